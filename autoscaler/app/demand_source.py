"""Makes what reads the demand of a pool elsewhere, as its settings name it."""

from autoscaler.app.kubernetes_doors import KubernetesFinder
from autoscaler.ports import Clock
from autoscaler.scaling.doors import Doors
from autoscaler.telemetry.demand.find import Listed, Named, ServiceRecord
from autoscaler.telemetry.demand.options import (
    DemandOptions,
    DoorPlaces,
    KubernetesDoors,
    ListedDoors,
    NamedDoors,
    PrometheusDemand,
    ServiceRecordDoors,
)
from autoscaler.telemetry.demand.prometheus import PrometheusReader
from autoscaler.telemetry.demand.reader import DoorReader, Finder


def demand_source(
    pool: str, options: DemandOptions, doors: Doors, clock: Clock
) -> DoorReader | PrometheusReader:
    """Make it; nothing is read before it runs. It keeps `doors` informed, or knows it all by itself."""
    place = options.place
    if isinstance(place, PrometheusDemand):
        return PrometheusReader(pool, place, options.merge.carry, clock)
    return DoorReader(pool, doors, door_finder(place), options.reader, clock)


def door_finder(place: DoorPlaces) -> Finder:
    """Make what finds the doors there."""
    match place:
        case ListedDoors():
            return Listed(place)
        case NamedDoors():
            return Named(place)
        case ServiceRecordDoors():
            return ServiceRecord(place)
        case KubernetesDoors():
            return KubernetesFinder(place)
