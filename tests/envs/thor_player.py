"""A stand-in for AI2-THOR's Unity player. Its rules and messages are what the Python client's source and AI2-THOR's
documentation say of the real one, and not recordings of it.
"""

import contextlib
import http.client
import json
import socket
import threading
import time

import numpy as np

RADIUS = 0.2  # metres, of the agent
NEEDED = {"Teleport": {"position", "rotation", "horizon", "standing"}, "CreateHouse": {"house"}}


class World:
    """A rectangle of floor and an agent in it.

    Args:
        size: pixels along each side of a picture.
        channels: of a picture: 3, or 4 as AI2-THOR's platform CloudRendering has them.
        unfit: points (x, z) that are called reachable and are not.

    Attributes:
        log: the actions that were asked for.
    """

    def __init__(self, size=224, channels=3, unfit=()):
        self.size, self.channels, self.unfit, self.log = size, channels, set(unfit), []
        self.x, self.y, self.z, self.degrees = 0.0, 0.9, 0.0, 0.0
        self.low = self.high = (0.0, 0.0)
        self.settings = {}

    def perform(self, action):
        """Do an action; the agent's metadata and the picture, its top row first."""
        self.log.append(action)
        name = action["action"]
        code, error, result = "", "", None
        if not hasattr(self, f"do_{name}"):
            code, error = "InvalidAction", f"no action {name}"
        elif missing := NEEDED.get(name, set()) - set(action):
            code, error = "MissingArguments", f"{name} lacks {missing}"
        else:
            try:
                result = getattr(self, f"do_{name}")(action)
            except RuntimeError as problem:
                error = str(problem)
        metadata = {
            "agent": {
                "name": "agent",
                "position": {"x": self.x, "y": self.y, "z": self.z},
                "rotation": {"x": 0.0, "y": self.degrees, "z": 0.0},
                "cameraHorizon": 0.0,
                "isStanding": True,
            },
            "screenWidth": self.size,
            "screenHeight": self.size,
            "sceneName": "Procedural",
            "objects": [],
            "colors": [],
            "thirdPartyCameras": [],
            "lastAction": name,
            "lastActionSuccess": not error,
            "errorMessage": error,
            "errorCode": code,
            "actionReturn": result,
        }
        return metadata, self.picture()

    def picture(self):
        """Where each pixel is, in red and green, and where the agent is, in three blue bands: x, z and degrees."""
        picture = np.full((self.size, self.size, self.channels), 255, np.uint8)
        picture[..., 0] = np.arange(self.size)[:, None]
        picture[..., 1] = np.arange(self.size)
        for i, value in enumerate((round(self.x * 40), round(self.z * 25), round(self.degrees) % 360 // 2)):
            picture[:, i * self.size // 3 : (i + 1) * self.size // 3, 2] = value % 256
        return picture

    def fits(self, x, z):
        inside = all(a + RADIUS <= v <= b - RADIUS for a, v, b in zip(self.low, (x, z), self.high, strict=True))
        return inside and (x, z) not in self.unfit

    def do_Start(self, action):
        pass

    def do_GetScenesInBuild(self, action):
        return ["FloorPlan1_physics", "Procedural"]

    def do_Reset(self, action):
        """A scene by its name has a floor of 4 by 4 metres; a house has none before it is created."""
        self.x = self.z = self.degrees = 0.0
        size = 0.0 if action["sceneName"] == "Procedural" else 2.0
        self.low, self.high = [-size, -size], [size, size]

    def do_Initialize(self, action):
        self.settings = {"gridSize": 0.25, "snapToGrid": True} | action
        return {"cameraNearPlane": 0.1, "cameraFarPlane": 20.0}

    def do_CreateHouse(self, action):
        if not action["house"].get("rooms"):
            raise RuntimeError("a house without rooms")
        corners = [(p["x"], p["z"]) for p in action["house"]["rooms"][0]["floorPolygon"]]
        self.low, self.high = np.min(corners, 0).tolist(), np.max(corners, 0).tolist()

    def do_GetReachablePositions(self, action):
        """A grid with the agent on it, as far as the floor."""
        if not self.fits(self.x, self.z):
            raise RuntimeError(f"({self.x}, {self.z}) is not in a room")
        steps = np.arange(-40, 41) * self.settings["gridSize"]
        points = [(self.x + dx, self.z + dz) for dx in steps.tolist() for dz in steps.tolist()]
        return [{"x": x, "y": self.y, "z": z} for x, z in points if self.fits(x, z) or (x, z) in self.unfit]

    def do_Teleport(self, action):
        """The real player has floats of 32 bits."""
        position, rotation = action["position"], action["rotation"]
        x, y, z, degrees = (float(np.float32(v)) for v in (*(position[axis] for axis in "xyz"), rotation["y"]))
        if rotation["x"] or rotation["z"]:
            raise RuntimeError("no agent can pitch or roll")
        if self.settings["snapToGrid"] and (x % 0.25 or z % 0.25):
            raise RuntimeError(f"({x}, {z}) is not on the grid")
        if not self.fits(x, z):
            raise RuntimeError(f"({x}, {z}) collides")
        self.x, self.y, self.z, self.degrees = x, y, z, degrees


class Player(threading.Thread):
    """Tells a controller's server what happens in a world, over the server's own protocol, until it is told to stop."""

    def __init__(self, world, port):
        super().__init__(daemon=True)
        self.world, self.port = world, port

    def run(self):
        connection = self.connect()
        action = {"action": "Start", "sequenceId": 0}
        while "action" in action:
            agent, picture = self.world.perform({k: v for k, v in action.items() if k != "sequenceId"})
            metadata = {"agents": [agent], "activeAgentId": 0, "sequenceId": action["sequenceId"]}
            image = picture[::-1].tobytes()  # Unity's pictures begin at the bottom
            body, kind = form(metadata=json.dumps(metadata), token="", image=image)
            connection.request("POST", "/train", body, {"Content-Type": kind})
            action = json.loads(connection.getresponse().read())
        connection.close()

    def connect(self):
        for _ in range(1000):  # the server may not be there yet
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            with contextlib.suppress(ConnectionRefusedError):
                connection.connect()
                return connection
            time.sleep(0.01)
        raise TimeoutError("no server")


def form(**fields):
    """A form in the shape that Unity sends: its body, and its type."""
    boundary = "kq8SvrPdvCfoNSZ5yIlh"
    parts = []
    for name, value in fields.items():
        if isinstance(value, str):
            kind, more, value = 'text/plain; charset="utf-8"', "", value.encode()
        else:
            kind, more = "image/raw", f'; filename="{name}"'
        head = f'Content-Type: {kind}\r\nContent-disposition: form-data; name="{name}"{more}'
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + value + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f'multipart/form-data; boundary="{boundary}"'


@contextlib.contextmanager
def real_client(world, scene):
    """The controller of ai2thor, with a player that is not Unity."""
    from ai2thor.controller import Controller
    from ai2thor.wsgi_server import WsgiServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    player = Player(world, port)
    player.start()
    controller = Controller(
        start_unity=False, server_class=WsgiServer, port=port, width=world.size, height=world.size, scene=scene,
        server_timeout=20.0, server_start_timeout=20.0,
    )  # fmt: skip
    try:
        yield controller
    finally:
        if not controller.server.stopped:
            controller.stop()
        player.join(10)
        threading.Thread(target=controller.server.wsgi_server.shutdown, daemon=True).start()  # takes half a second


class Event:
    """As much of AI2-THOR's events as an environment needs."""

    def __init__(self, metadata, frame):
        self.metadata, self.frame = metadata, frame

    def __bool__(self):
        return self.metadata["lastActionSuccess"]


class Direct:
    """A controller without ai2thor: it asks the world without a protocol between them."""

    def __init__(self, world, scene):
        self.world, self.scene, self.stopped = world, scene, False
        self.reset(scene)

    def reset(self, scene, **settings):
        self.scene = scene
        self.step("Reset", sceneName=scene if isinstance(scene, str) else "Procedural")
        event = self.step("Initialize", **settings)
        return event if isinstance(scene, str) else self.step("CreateHouse", house=scene)

    def step(self, action, **arguments):
        metadata, picture = self.world.perform({"action": action, **arguments})
        picture.flags.writeable = False
        return Event(metadata, picture[..., :3])

    def stop(self):
        self.stopped = True
