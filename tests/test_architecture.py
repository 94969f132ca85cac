"""How the code is built: imports run one way, files are short, and nothing asks which world it is in."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(file for top in ("eswm_gym", "agents", "benchmarks", "examples") for file in (ROOT / top).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

# What may not be imported where. The command `eswm_gym.replay` stands for the one in `eswm_gym.agents`.
FORBIDDEN = {
    "eswm_gym/rooms": ("torch", "gymnasium", "minigrid", "lightning", "eswm_gym.world_model", "eswm_gym.envs"),
    "eswm_gym/world_model": ("gymnasium", "minigrid", "stable_baselines3", "eswm_gym.envs", "eswm_gym.wrappers"),
    "eswm_gym/envs": ("torch", "eswm_gym.world_model"),
    "eswm_gym/wrappers": ("torch", "eswm_gym.world_model"),
    "eswm_gym/analysis": ("gymnasium", "eswm_gym.envs"),
    "eswm_gym": ("eswm_gym.agents",),
    "agents": ("benchmarks",),
}
UPWARDS = {"eswm_gym/replay.py"}


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = ("eswm_gym", *parts) if parts[0] == "agents" else parts
    return ".".join(part for part in parts if part != "__init__")


def imports(file: Path, for_types: bool = True) -> set[str]:
    """The modules that a file imports, those inside functions too; those for type checkers alone if wanted."""
    tree = ast.parse(file.read_text())
    unwanted = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_types
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in set(ast.walk(tree)) - unwanted:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_run_one_way(folder):
    wrong = [
        (str(file.relative_to(ROOT)), module)
        for file in FILES
        if (ROOT / folder) in file.parents and str(file.relative_to(ROOT)) not in UPWARDS
        for module in imports(file)
        if any(within(module, package) for package in FORBIDDEN[folder])
    ]
    assert wrong == []


def test_agents_are_imported_by_their_installed_name():
    assert [str(file) for file in [*FILES, *TESTS] if any(within(name, "agents") for name in imports(file))] == []


def test_no_circles():
    """No module of the package imports another one that imports it, however far round."""
    modules = {
        module_of(file): file for file in FILES if "benchmarks" not in file.parts and "examples" not in file.parts
    }
    graph = {
        name: {m for m in imports(file, for_types=False) if m in modules and m != name}
        for name, file in modules.items()
    }
    packages = {name for name, file in modules.items() if file.name == "__init__.py"}
    for name in graph:  # a package re-exports what lies in it, which is no circle
        graph[name] -= packages
    left = dict(graph)
    while free := [name for name, needed in left.items() if not needed & set(left)]:
        for name in free:
            del left[name]
    assert left == {}


def test_files_are_short():
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in [*FILES, *TESTS]}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_nothing_asks_which_world_it_is_in():
    """No `isinstance` on the class of a model or of a world, but where knowledge is chosen."""
    classes = {
        *("Transformer", "ViewTransformer", "Recurrent", "TEMT", "EMWM", "Lookup", "PathIntegrator", "MapOnly"),
        *("ViewModel", "OverlapModel", "OverlapOnly"),
        *("IntegerCodec", "BinaryCodec", "ViewCodec", "EgocentricCodec", "Prediction", "ViewPrediction"),
        *("LatticeSource", "GridSource", "RoomConfig", "GridConfig", "BankBatch", "GridBankBatch", "MiniGridRoomEnv"),
        *("SymbolKnowledge", "ViewKnowledge", "UncertainViews"),
    }
    wrong = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                if asked & classes and file.name != "knowledge.py":
                    wrong.append((str(file.relative_to(ROOT)), node.lineno))
    assert wrong == []
