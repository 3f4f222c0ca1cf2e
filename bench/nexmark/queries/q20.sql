-- bids with their auction, of one category
SELECT
  b.auction, b.bidder, b.price, b.channel, b.url, b.date_time,
  a.item_name, a.initial_bid, a.reserve, a.date_time AS opened, a.expires, a.seller, a.category
FROM bid AS b
JOIN auction AS a ON a.id = b.auction
WHERE a.category = 10
