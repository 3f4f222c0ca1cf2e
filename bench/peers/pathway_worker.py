"""Pathway's side of `worker`: runs in the peers' environment, with nothing of Tideview's."""

import json
import sys
import threading
from queue import Queue

import pathway as pw
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

ANSWERS = sys.stdout
sys.stdout = sys.stderr


class Order(pw.Schema):
    """Amounts are in cents."""

    key: int = pw.column_definition(primary_key=True)
    customer: int
    product: int
    amount: int
    quantity: int


class Customer(pw.Schema):
    """What the query needs of them."""

    key: int = pw.column_definition(primary_key=True)
    region: str


class Product(pw.Schema):
    """What the query needs of them."""

    key: int = pw.column_definition(primary_key=True)
    category: str


class Orders(pw.io.python.ConnectorSubject):
    """Passes on batches of orders, each as one step of time."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: Queue = Queue()

    def run(self) -> None:
        """Until an empty batch."""
        while True:
            batch = self.batches.get()
            if batch is None:
                return
            for row in batch:
                self.next(**row)
            self.commit()


class Result:
    """The newest rows, and how many orders are in them; every row has their number at its end."""

    def __init__(self) -> None:
        self.rows: dict = {}
        self.orders = 0
        self.ended = threading.Condition()

    def on_change(self, key: pw.Pointer, row: dict, time: int, is_addition: bool) -> None:
        """A row comes or goes."""
        self.orders += row["orders"] if is_addition else -row["orders"]
        if is_addition:
            self.rows[key] = tuple(row.values())
        elif self.rows.get(key) == tuple(row.values()):
            del self.rows[key]

    def on_time_end(self, time: int) -> None:
        """All of a step is there."""
        with self.ended:
            self.ended.notify_all()

    def wait_for(self, orders: int) -> None:
        """Until a step has ended after which so many orders are counted."""
        with self.ended:
            self.ended.wait_for(lambda: self.orders == orders)


def main() -> None:
    """Answer until there are no more questions."""
    given = json.loads(sys.argv[1])
    subject, result = Orders(), Result()
    orders = pw.io.python.read(subject, schema=Order, autocommit_duration_ms=None)
    pw.io.subscribe(
        query(given["view"], orders, given["files"]),
        on_change=result.on_change,
        on_time_end=result.on_time_end,
    )
    threading.Thread(target=answer, args=(subject, result), daemon=True).start()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def query(view: str, orders: pw.Table, files: dict) -> pw.Table:
    """The same as the SQL of that view."""
    if view == "grouped sum":
        return orders.groupby(orders.customer).reduce(
            orders.customer, total=pw.reducers.sum(orders.amount), orders=pw.reducers.count()
        )
    customers = static(Customer, files["customers"], "region")
    products = static(Product, files["products"], "category")
    joined = orders.join(customers, orders.customer == customers.key).select(
        orders.product, orders.amount, orders.quantity, customers.region
    )
    rows = joined.join(products, joined.product == products.key).select(
        joined.region, products.category, worth=joined.amount * joined.quantity
    )
    return rows.groupby(rows.region, rows.category).reduce(
        rows.region, rows.category, total=pw.reducers.sum(rows.worth), orders=pw.reducers.count()
    )


def static(schema: type, files: list, column: str) -> pw.Table:
    """A table that doesn't change."""
    table = pa.concat_tables([parquet.read_table(file, columns=["id", column]) for file in files])
    rows = list(zip(table["id"].to_pylist(), table[column].to_pylist(), strict=True))
    return pw.debug.table_from_rows(schema, rows)


def taken(files: list) -> list:
    """Rows of orders as the schema has them."""
    table = pa.concat_tables([parquet.read_table(file) for file in files])
    cents = pc.cast(pc.multiply(table["amount"], pa.scalar(100)), pa.int64(), safe=False)
    columns = {
        "key": table["id"],
        "customer": table["customer_id"],
        "product": table["product_id"],
        "amount": cents,
        "quantity": table["quantity"],
    }
    return pa.table(columns).to_pylist()


def answer(subject: Orders, result: Result) -> None:
    """Ask the computation what the other side asks."""
    say(pw.__version__)
    given = 0
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "take":
            batch = taken(question["files"])
            given += len(batch)
            subject.batches.put(batch)
            result.wait_for(given)
            say(True)
        else:
            say([list(row) for row in result.rows.values()])
    subject.batches.put(None)


def say(answer: object) -> None:
    """One line."""
    print(json.dumps({"answer": answer}), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main()
