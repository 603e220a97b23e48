"""Diagnosis of a heap in trouble: from telemetry, counters, snapshots, dumps, logs and traces to one sentence."""
