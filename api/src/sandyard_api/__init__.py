"""The contract: resources, reasons, limits, the PEP 723 reader, wire messages. Import its modules by name."""
