-- The warm-up of asynchronous computation: who computes, and when?
--
-- Ten times, a 1000x1000 matrix of normal random numbers is made and multiplied by itself.  First
-- in the manner of NumPy: float64, and each operation waited for.  Then as this program does it:
-- the script only hands the operations to the backend's queue and goes on at once, so the second
-- time is that of enqueueing twenty operations.  The third time includes sync(), which waits until
-- the backend has done the work: that is what the computation really takes.
--
-- (Dive into Deep Learning, "Asynchronous Computation", has the same experiment.)

-- Warm-up: the threads start, and memory is touched for the first time.
for _, dtype in ipairs {"float64", "float32"} do
  local a = tensor.randn(1000, 1000, {dtype = dtype})
  a:mm(a)
end
sync()

benchmark("numpy-style", function()
  for _ = 1, 10 do
    local a = tensor.randn(1000, 1000, {dtype = "float64"}):wait()
    local b = a:mm(a):wait()
  end
end)

benchmark("tensorlua", function()
  for _ = 1, 10 do
    local a = tensor.randn(1000, 1000)
    local b = a:mm(a)
  end
end)

benchmark(function()
  for _ = 1, 10 do
    local a = tensor.randn(1000, 1000)
    local b = a:mm(a)
  end
  sync()
end)
