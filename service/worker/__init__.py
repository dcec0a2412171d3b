"""Workers: processes that carry runs on, any number of them, on any number of machines."""

from service.worker.draining import Draining
from service.worker.work import work

__all__ = ["Draining", "work"]
