"""Workloads: what a network application asks of its heap, as a trace.

One module each, with a function of its name: `drr.drr`, `easyport.easyport`, `url.url` and `queue.queue` take a packet
table, `modem.modem` and `poisson.poisson` none. ``docs/workloads.md`` tells the choices that the papers leave open.
"""
