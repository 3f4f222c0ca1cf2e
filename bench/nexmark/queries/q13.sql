-- bids with a value from a table that doesn't change
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM (SELECT auction, bidder, price, date_time, auction % 10000 AS k FROM bid) AS b
JOIN side_input AS s ON s.key = b.k
