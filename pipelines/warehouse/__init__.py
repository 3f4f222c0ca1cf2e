"""A small warehouse: raw tables, cleaned in staging, joined to facts, summed up in marts."""
