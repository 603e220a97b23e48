"""A case study of Mamagkakis et al. 2006 on real networks and on the paper's mix, and the page about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import heapwright as hw
from heapwright_papers import mixes
from heapwright_papers.case_study import MIX, REAL, Case, Trial, counted, read_as, stand_ins, try_all
from heapwright_papers.case_tables import names
from heapwright_papers.declared import constants, fill, page_of
from heapwright_papers.documents import tables
from heapwright_papers.held_out import ONE_IN, RETUNED, contest
from heapwright_papers.own_space import OwnSpace
from heapwright_papers.readings import Joint, leading
from heapwright_papers.readings_page import add_readings
from heapwright_papers.traffic import packet_tables

if TYPE_CHECKING:
    from heapwright import PacketTable, Recipe, Trace
    from heapwright_papers.page import Page


def short_mix(of: Case, packets: int) -> dict[str, Trace]:
    """The forms of an application's mix in this number of packets, with the first seed."""
    return {
        form.name: hw.workload(of.name, form.packets(packets, mixes.SEEDS[0]), rate=mixes.RATE)
        for form in mixes.mixes(of.dominant, of.traces)
    }


class CaseRun:
    """The runs of a case study, in their order, and the page that they fill.

    The paper is read as `joint` has it, by default as `readings.leading`; `chosen_of` takes the tables that replace
    the paper's networks. Raises HeapwrightError as `traffic.packet_tables`, or where no table is fit for that.

    Attributes:
        tables: all packet tables of the folder.
        chosen: the tables that replace the paper's networks.
        read: how the paper is read.
        forms: those of the paper's mix.
        heaps: what is tried.
        trials: on real networks, where there are any, and on the mix, as it is read.
    """

    def __init__(
        self,
        case: Case,
        progress: Callable[[str], None],
        packets: Path | None,
        joint: Joint | None,
        chosen_of: Callable[[Mapping[str, PacketTable]], dict[str, PacketTable]] | None = None,
    ) -> None:
        self.case, self.progress, self.read = case, progress, joint or leading()
        self.tables = packet_tables(packets)
        self.chosen = chosen_of(self.tables) if chosen_of else stand_ins(self.tables, case.packets, case.traces)
        self.page = page_of(case.name)
        self.page.traffic(self.chosen)
        self.forms = mixes.mixes(case.dominant, case.traces)
        self.heaps = case.heaps()
        self.trials: list[Trial] = []

    def workload(self, table: PacketTable, **how: Any) -> Trace:
        """What the application makes of packets."""
        trace: Trace = hw.workload(self.case.name, table, **how)
        return trace

    def short_mix(self, packets: int) -> dict[str, Trace]:
        """The forms of the mix in this number of packets, with the first seed."""
        return short_mix(self.case, packets)

    def own_space(self) -> OwnSpace:
        """The four techniques on the mix."""
        return OwnSpace.of(self.case.proposed, self.short_mix(self.case.grid_packets))

    def try_heaps(self, **more: Recipe) -> None:
        """Every allocator of the case study, and more, on both kinds of traffic."""
        self.heaps |= more
        count = self.case.packets
        traces = {(name, 0): self.workload(table, count=count) for name, table in self.chosen.items()}
        mix = {(form.name, seed): form.packets(count, seed) for seed in mixes.SEEDS for form in self.forms}
        self.page.traffic({f"{name}, seed {seed}": table for (name, seed), table in mix.items()})
        kinds = {REAL: traces, MIX: {key: self.workload(table, rate=mixes.RATE) for key, table in mix.items()}}
        for on, given in kinds.items():
            if given:
                self.progress(f"{self.case.name}: {on}")
                self.trials.append(try_all(on, given, self.heaps, counted(self.heaps)).under(read_as(self.read)))

    def filled(self, seen: Mapping[str, Any], own: OwnSpace | None = None) -> Page:
        """The page, with its readings, whose statements and parts see these names, too; `own`: if it is known."""
        of = self.case
        against = contest(of, self.tables, self.progress) if self.tables else None
        if against:
            self.page.traffic({name: self.tables[name] for name in against.networks})
        self.progress(f"{of.name}: the paper's own space")
        grid = (own or self.own_space()).against_proposed
        known = {**constants(of.name), **seen, "grid": grid, "contest": against}
        self.progress(f"{of.name}: readings")
        info = add_readings(self.page, of, self.trials, known, self.read)
        more = {
            "ONE_IN": ONE_IN,
            "findings": self.page.findings,
            "RETUNED": RETUNED,
            "more": list(self.heaps),
            "forms": self.forms,
            "all_forms": len(self.forms) == len(tables("cases")["form"]),
            "seeds": mixes.SEEDS,
            "rate": mixes.RATE,
        }
        fill(self.page, {**names(of, *self.trials), **known, **info, **more})
        return self.page
