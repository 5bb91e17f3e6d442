"""Test benches for hardware designs, made of reference designs and tried before they are kept."""
