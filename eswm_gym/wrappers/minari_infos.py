"""What Minari records of the infos of an episode. Needs the extra `minari`; nothing else in the package imports it."""

from __future__ import annotations

from typing import Any

from minari import StepDataCallback


class SteadyInfos(StepDataCallback):
    """Records the entries of `info` that every step of an episode has, as Minari's files need:

        minari.DataCollector(env, record_infos=True, step_data_callback=SteadyInfos)

    `memory_bank` is left out, since `reset` alone hands it out, and so is what wrappers say now and then. Whoever
    collects the data sees them all. To record the bank, put it into the observation with `MemoryBankObservation`.
    """

    def __call__(self, *args: Any, **step: Any) -> Any:
        data = super().__call__(*args, **step)
        info = data["info"]
        if data["action"] is None:  # after `reset`
            self._keys = info.keys() - {"memory_bank"}
        return data | {"info": {key: info[key] for key in self._keys}}
