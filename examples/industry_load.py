"""Load of an industrial network: Modbus devices that are polled, and an OPC UA server with subscribers.

Server and client are pymodbus's and asyncua's own. What is sent is drawn from a seed; the number of calls is bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time

DEVICES = 8
VARIABLES = 24


async def modbus_server(address: str, port: int) -> None:
    """Serve DEVICES devices of 200 registers and as many coils."""
    from pymodbus.server import StartAsyncTcpServer
    from pymodbus.simulator import DataType, SimData, SimDevice

    def device(number: int) -> SimDevice:
        return SimDevice(number, [SimData(0, count=400, values=number, datatype=DataType.REGISTERS)])

    await StartAsyncTcpServer([device(number) for number in range(1, DEVICES + 1)], address=(address, port))


async def poll(address: str, port: int, device: int, seconds: float) -> None:
    """Read a device's registers every 100 ms, its coils every fifth time, and write a register now and then."""
    from pymodbus.client import AsyncModbusTcpClient

    draw = random.Random(device)
    client = AsyncModbusTcpClient(address, port=port)
    await client.connect()
    ends, count = time.monotonic() + seconds, draw.choice((10, 10, 40, 100))
    for round_ in range(int(seconds * 10)):
        began = time.monotonic()
        await client.read_holding_registers(0, count=count, device_id=device)
        if round_ % 5 == 0:
            await client.read_coils(0, count=64, device_id=device)
        if draw.random() < 0.05:
            await client.write_registers(10, [draw.randrange(1000)] * draw.randint(1, 8), device_id=device)
        if time.monotonic() > ends:
            break
        await asyncio.sleep(max(0.0, began + 0.1 - time.monotonic()))
    client.close()


async def modbus_client(address: str, port: int) -> None:
    """Poll all devices, each over its own connection."""
    await asyncio.gather(*(poll(address, port, device, 25) for device in range(1, DEVICES + 1)))


async def opcua_server(address: str, port: int) -> None:
    """Serve VARIABLES numbers, of which a few change every 100 ms."""
    from asyncua import Server

    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://{address}:{port}/plant")
    space = await server.register_namespace("urn:example:plant")
    plant = await server.nodes.objects.add_object(space, "plant")
    variables = [await plant.add_variable(space, f"variable-{number}", 0.0) for number in range(VARIABLES)]
    for variable in variables:
        await variable.set_writable()
    draw = random.Random(1)
    async with server:
        while True:
            for variable in draw.sample(variables, draw.randint(1, 8)):
                await variable.write_value(draw.uniform(0, 100))
            await asyncio.sleep(0.1)


class Ignored:
    """A subscriber that drops what it is sent."""

    def datachange_notification(self, node: object, value: object, data: object) -> None:
        """Drop a value."""


async def watch(address: str, port: int, number: int, seconds: float) -> None:
    """Subscribe to the variables, and read and write some of them."""
    from asyncua import Client

    draw = random.Random(number)
    async with Client(f"opc.tcp://{address}:{port}/plant") as client:
        space = await client.get_namespace_index("urn:example:plant")
        plant = await client.nodes.objects.get_child(f"{space}:plant")
        variables = await plant.get_children()
        subscription = await client.create_subscription(100 * number, Ignored())
        await subscription.subscribe_data_change(variables)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            await client.read_values(draw.sample(variables, draw.choice((1, 1, 4, 16))))
            if draw.random() < 0.1:
                await draw.choice(variables).write_value(draw.uniform(0, 100))
            await asyncio.sleep(draw.expovariate(10))


async def opcua_client(address: str, port: int) -> None:
    """Watch the server with four clients."""
    await asyncio.gather(*(watch(address, port, number, 20) for number in range(1, 5)))


def main() -> None:
    """Be one of the servers, or the load of one."""
    roles = {
        "modbus-server": modbus_server,
        "modbus-client": modbus_client,
        "opcua-server": opcua_server,
        "opcua-client": opcua_client,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=roles)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    asyncio.run(roles[arguments.role](arguments.address, arguments.port))


if __name__ == "__main__":
    main()
