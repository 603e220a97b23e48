"""Recordings of SEGGER's own recorder, built for this machine, against the calls that were passed to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import originals
import pytest
from platform_builds import fetched

import heapwright as hw
from heapwright._traces.validation import FREE

HEADERS = {
    "SEGGER_RTT.h": """
#ifndef SEGGER_RTT_H
#define SEGGER_RTT_H
#define SEGGER_RTT_MODE_NO_BLOCK_SKIP 0
#define SEGGER_RTT_HASDATA(channel) 0
int SEGGER_RTT_ConfigUpBuffer(unsigned channel, const char *name, void *room, unsigned bytes, unsigned mode);
int SEGGER_RTT_ConfigDownBuffer(unsigned channel, const char *name, void *room, unsigned bytes, unsigned mode);
unsigned SEGGER_RTT_WriteSkipNoLock(unsigned channel, const void *data, unsigned bytes);
unsigned SEGGER_RTT_ReadNoLock(unsigned channel, void *data, unsigned bytes);
#endif
""",
    "SEGGER_RTT_Conf.h": """
#define SEGGER_RTT_MAX_NUM_UP_BUFFERS 2
#define SEGGER_RTT_MAX_NUM_DOWN_BUFFERS 2
""",
    "SEGGER_SYSVIEW_Conf.h": """
unsigned now(void);
#define SEGGER_SYSVIEW_GET_TIMESTAMP() now()
#define SEGGER_SYSVIEW_GET_INTERRUPT_ID() 15
#define SEGGER_SYSVIEW_LOCK()
#define SEGGER_SYSVIEW_UNLOCK()
#define SEGGER_SYSVIEW_RTT_CHANNEL 1
#define SEGGER_SYSVIEW_ID_BASE 0x20000000
#define SEGGER_SYSVIEW_ID_SHIFT 2
""",
}

PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include "SEGGER_SYSVIEW.h"
#include "SEGGER_RTT.h"

#define AT(address) ((void *)(uintptr_t)(address))
#define HEAP AT(0x20000400)
#define TASK 0x20001000

static unsigned time;
static int full;

unsigned now(void) { return time += 250; }

int SEGGER_RTT_ConfigUpBuffer(unsigned a, const char *b, void *c, unsigned d, unsigned e) { return 0; }
int SEGGER_RTT_ConfigDownBuffer(unsigned a, const char *b, void *c, unsigned d, unsigned e) { return 0; }
unsigned SEGGER_RTT_ReadNoLock(unsigned a, void *b, unsigned c) { return 0; }
unsigned SEGGER_RTT_WriteSkipNoLock(unsigned channel, const void *data, unsigned bytes)
{
    return full ? 0 : fwrite(data, 1, bytes, stdout) == bytes;
}

static U64 microseconds(void) { return 12345678901u; }
static void tasks(void)
{
    const SEGGER_SYSVIEW_TASKINFO task = {TASK, "main", 3, 0x20004000, 1024, 10};
    SEGGER_SYSVIEW_SendTaskInfo(&task);
}
static void describe(void)
{
    SEGGER_SYSVIEW_SendSysDesc("N=App,D=Cortex-M4,O=FreeRTOS");
    SEGGER_SYSVIEW_SendSysDesc("I#15=SysTick");
}
static const SEGGER_SYSVIEW_OS_API system_api = {microseconds, tasks};

static void others(unsigned i, unsigned random)
{
    if (i % 29 == 0) {
        SEGGER_SYSVIEW_PrintfHostEx("host %d %u", 0, i, random);
        SEGGER_SYSVIEW_PrintfTargetEx("target %d", 0, i);
    }
    if (i % 37 == 0) {
        SEGGER_SYSVIEW_RecordU32x3(33 + i % 700, i, random, 3);
        SEGGER_SYSVIEW_RecordEndCallU32(600, random);
    }
    if (i % 41 == 0) {
        SEGGER_SYSVIEW_OnTaskStopReady(TASK, 4);
        SEGGER_SYSVIEW_OnTaskStopExec();
        SEGGER_SYSVIEW_OnIdle();
        SEGGER_SYSVIEW_OnTaskStartExec(TASK);
    }
    if (i % 43 == 0) {
        SEGGER_SYSVIEW_RecordEnterTimer(0x20002000);
        SEGGER_SYSVIEW_RecordExitTimer();
        SEGGER_SYSVIEW_MarkStart(1);
        SEGGER_SYSVIEW_Mark(1);
        SEGGER_SYSVIEW_MarkStop(1);
        SEGGER_SYSVIEW_RecordSystime();
    }
    if (i % 47 == 0) {
        SEGGER_SYSVIEW_SendTaskList();
        SEGGER_SYSVIEW_RecordString(700, "a text, which may be as long as the buffer of a packet allows");
    }
    if (i == 3000) {
        full = 1;
        for (int lost = 0; lost < 7; lost++) {
            SEGGER_SYSVIEW_RecordVoid(3);
        }
        full = 0;
    }
}

int main(void)
{
    static unsigned live[64];
    unsigned random = 1;
    SEGGER_SYSVIEW_Init(1000000, 1000000, &system_api, describe);
    SEGGER_SYSVIEW_Start();
    SEGGER_SYSVIEW_HeapDefine(HEAP, AT(0x20008000), 0x40000, 8);
    SEGGER_SYSVIEW_NameMarker(3, "marker");
    SEGGER_SYSVIEW_NameResource(0x20000800, "queue");
    SEGGER_SYSVIEW_OnTaskCreate(TASK);
    SEGGER_SYSVIEW_OnTaskStartReady(TASK);
    SEGGER_SYSVIEW_OnTaskStartExec(TASK);
    for (unsigned i = 0; i < 5000; i++) {
        random = random * 1103515245u + 12345u;
        const unsigned slot = (random >> 16) % 64, size = (random >> 8) % 4000 + 1;
        others(i, random);
        if (i % 17 == 0) {
            SEGGER_SYSVIEW_RecordEnterISR();
        }
        void *const pointer = AT(0x20008000u + slot * 4096);
        if (live[slot]) {
            SEGGER_SYSVIEW_HeapFree(HEAP, pointer);
            fprintf(stderr, "free\\n");
        } else if (i % 2) {
            SEGGER_SYSVIEW_HeapAlloc(HEAP, pointer, size);
        } else {
            SEGGER_SYSVIEW_HeapAllocEx(HEAP, pointer, size, 77);
        }
        if (!live[slot]) {
            fprintf(stderr, "%u\\n", size);
        }
        live[slot] = !live[slot];
        if (i % 17 == 0) {
            i % 2 ? SEGGER_SYSVIEW_RecordExitISR() : SEGGER_SYSVIEW_RecordExitISRToScheduler();
        }
    }
    SEGGER_SYSVIEW_Stop();
    return 0;
}
"""


@pytest.fixture(scope="module")
def recorder() -> Path:
    """The folder of SEGGER's recorder."""
    return fetched(originals.systemview)


def test_what_seggers_recorder_writes_is_read(recorder: Path, tmp_path: Path) -> None:
    # The recorder's own folder has another SEGGER_RTT.h, which would be taken first.
    for file in recorder.glob("SEGGER_SYSVIEW*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "SEGGER.h").write_bytes((recorder / "SEGGER.h").read_bytes())
    (tmp_path / "Global.h").write_bytes((recorder.parent / "Config" / "Global.h").read_bytes())
    for name, text in (HEADERS | {"program.c": PROGRAM}).items():
        (tmp_path / name).write_text(text)
    build = ["cc", "-w", "-I.", "-o", "program", "program.c", "SEGGER_SYSVIEW.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, check=True)
    (tmp_path / "app.SVDat").write_bytes(done.stdout)
    trace = hw.import_log(tmp_path / "app.SVDat")
    results = ["free" if op == FREE else str(size) for op, size in zip(trace.op, trace.size, strict=True)]
    output = done.stderr.decode().split()
    assert results == [word if word == "free" else str(int(word) & ~3) for word in output]
    assert (trace.metadata["recorder"], trace.repairs) == ("sysview", ())
    assert trace.metadata["caveats"].startswith("6 packets were lost")
    assert set(trace.tid) == {0, 1}
    assert (trace.ts_us[0], trace.ts_us[-1] > 1_000_000) == (0, True)
