-- Compilers and interpreters: what does the script's language cost?
--
-- A small network (512 inputs, 256 and 128 hidden units, 2 outputs) is applied to one input a
-- thousand times.  First as ever: Lua runs the function each time, and each operation finds its
-- sizes, makes its handles and checks what it is given.  Then compiled: tensor.compile() runs the
-- function once, keeps the commands that it enqueued, and enqueues the same ones again at each
-- later call, without running any Lua of it.  That is why print() inside prints once.
--
-- "enqueue" is what the script's thread takes to hand the operations over, before sync() waits for
-- the rest.  What compiling saves is there: the arithmetic is the same, to the bit.
--
-- (Dive into Deep Learning, "Compilers and Interpreters", has the same experiment.)

local TIMES = 1000

local function linear(inputs, outputs)
  local weight, bias = tensor.randn(inputs, outputs) / inputs ^ 0.5, tensor.zeros(outputs)
  return function(x) return x:mm(weight) + bias end
end

local layer1, layer2, layer3 = linear(512, 256), linear(256, 128), linear(128, 2)

local function net(x) return layer3(layer2(layer1(x):relu()):relu()) end

local compiled = tensor.compile(function(x)
  print("tracing an input of " .. table.concat(x.shape, "x"))
  return net(x)
end)

local x = tensor.randn(1, 512)
print("the same bits:", net(x) == compiled(x))

local function thousand(f)
  return function() for _ = 1, TIMES do f(x) end end
end

for _, round in ipairs {{"interpreted", net}, {"compiled", compiled}} do
  local name, f = table.unpack(round)
  local result = benchmark(name, thousand(f), {sync = true, warmup = 1, times = 5})
  print(("  enqueue: %.4f sec"):format(result.enqueue))
end
