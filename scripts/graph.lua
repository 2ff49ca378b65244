-- A small graph: who waits for whom?
--
-- The first three statements only enqueue.  The frontend, which runs this script, goes on while
-- the backend works; nothing has been computed yet, perhaps, when it comes to the last line.

local x = tensor.ones(1, 2)
local y = tensor.ones(1, 2)
local z = x * y + 2

-- Printing needs the values, so here the frontend waits for the backend to compute z.  The backend
-- in its turn had to wait: the sum for the product, and the product for x and y.  x and y wait for
-- nobody, so it may have made them at the same time.
print(z)
