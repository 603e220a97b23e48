"""lwIP's example application on FreeRTOS, on an emulated Cortex-M3 with Ethernet, under clients that never rest.

It is what `bench/rtos.py` builds: a web server, echoes, a generator of characters, a shell, an SNMP agent and an MQTT
client. Packets, pools, tasks and queues come from the kernel's heap_4.c. What the ring of the hooks has is handed out
while the board is idle, or before it takes more packets.
"""

from __future__ import annotations

from pathlib import Path

import rtos
import rtos_load
from long.running import HERE, Run
from rtos_load import Load

import heapwright as hw

LOAD = Load(http=12, echo=4, characters=2, datagrams=8, snmp=4, shell=3, stalled=2, pause=0.1, burst=8)
REQUESTS_A_SECOND = 100
"""Requests a second that are answered, about: a run is as long as its requests would take."""
WRAPPED = (
    "-Wl,--wrap=pvPortMalloc,--wrap=pvPortCalloc,--wrap=vPortFree,--wrap=vApplicationIdleHook,--wrap=default_netif_poll"
)


def record(run: Run) -> None:
    """Record the application on the kernel's own heap."""
    application = rtos.Application.built(run.folder)
    hooks = run.folder / "hooks"
    sources = [path for path in hw.hooks("freertos", hooks) if path.suffix == ".c"]
    more: list[str | Path] = [*rtos.RING, f"-I{hooks}", *sources, HERE / "drained.c", WRAPPED]
    image = application.linked("recorded", application.heap_4, rtos.ROOMY, more)
    log = run.folder / "recorded.log"
    rtos_load.run(image, LOAD, run.seed, run.requests / REQUESTS_A_SECOND, output=log)
    trace = hw.import_log(log)
    if trace.repairs or "caveats" in trace.metadata:
        raise RuntimeError(f"calls are missing: {trace.repairs} {trace.metadata.get('caveats', '')}")
    trace.write(run.trace)
