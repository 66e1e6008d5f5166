"""Power of nodes, and the signals that price it or limit it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.power.description import NodePower as NodePower
    from .environment.power.description import Power as Power
    from .environment.power.in_use import PowerInUse as PowerInUse
    from .environment.signals.cooling import Cooling as Cooling
    from .environment.signals.published import SignalFile as SignalFile
    from .environment.signals.signal import Signal as Signal
    from .environment.signals.signal import parse_signal as parse_signal
    from .environment.signals.signal import read_signal as read_signal
    from .environment.signals.tariff import Tariff as Tariff
    from .environment.signals.tariff import TariffPeriod as TariffPeriod
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
