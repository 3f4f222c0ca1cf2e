-- sessions of bidders
SELECT
  bidder, session_window.start AS starts, session_window.end AS ends, COUNT(*) AS bids
FROM bid
GROUP BY bidder, session_window(date_time, '10 seconds')
