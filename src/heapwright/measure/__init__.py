"""What a heap costs where it runs: on this machine (host) and on emulated boards."""

from heapwright.files.rooms import answers_calls

answers_calls(__name__)
