-- make bench: what each workload takes here, in its peers and at the limit, as ratios within one
-- run.  Rounds are interleaved, since the machine is shared; each figure is the median of rounds.
-- TENSORLUA is the program, BENCH_BUILD the folder of the helpers in C.
local program = os.getenv("TENSORLUA") or arg[-1]
local helpers = os.getenv("BENCH_BUILD") or "build/bench"
local ROUNDS = tonumber(os.getenv("BENCH_ROUNDS") or 5)

local function read(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  return pipe:close() and text or nil
end

-- The first python3 that has the library, as a function that gives a table of seconds by workload.
local function peer(library)
  for _, python in ipairs {"python3", "/usr/bin/python3"} do
    local command = ("%s tests/bench/peers.py %s %d 2>/dev/null"):format(python, library,
      tensor.get_num_threads())
    if read(("%s -c 'import %s' 2>/dev/null"):format(python, library)) then
      return function()
        local seconds = {}
        for name, value in read(command):gmatch("(%S+) (%S+)\n") do
          seconds[name] = tonumber(value)
        end
        return seconds
      end
    end
  end
  return function() return {} end
end

local function quietly(f, options)
  local print_before = print
  print = function() end
  local result = benchmark(f, options)
  print = print_before
  return result
end

local function warmup()
  for _ = 1, 10 do
    local a = tensor.randn(1000, 1000)
    local b = a:mm(a)
  end
end

local SMALL = 1000000
local one_by_two = tensor.ones(1, 2)
local function small()
  local y
  for _ = 1, SMALL do y = one_by_two + 1 end
  return y
end

local function ours()
  local enqueued = quietly(warmup, {warmup = 1})
  sync()
  return {
    enqueue = enqueued.seconds,
    warmup = quietly(warmup, {sync = true, times = 3}).min,
    small = quietly(small, {sync = true}).seconds / SMALL,
    randn = quietly(function() tensor.randn(1000, 1000) end, {sync = true, times = 20}).min,
  }
end

local function median(rounds, name)
  local values = {}
  for _, round in ipairs(rounds) do values[#values + 1] = round[name] end
  table.sort(values)
  return values[(#values + 1) // 2], values[1], values[#values]
end

local numpy, torch = peer("numpy"), peer("torch")
local here, bare, in_numpy, in_torch = {}, {}, {}, {}
for round = 1, ROUNDS do
  io.stderr:write(("round %d of %d\n"):format(round, ROUNDS))
  bare[round] = {warmup = tonumber(read(helpers .. "/sgemm"))}
  here[round] = ours()
  in_numpy[round] = numpy()
  in_torch[round] = torch()
  for _, peer_round in ipairs {in_numpy[round], in_torch[round]} do
    if peer_round.small then peer_round.small = peer_round.small / 100000 end
  end
end

local rows = {}
local function row(workload, name, unit, scale, limit, limit_name)
  local value, least, most = median(here, name)
  local line = ("%-34s %9.4g %-3s (%.4g to %.4g)"):format(workload, value * scale, unit,
    least * scale, most * scale)
  local ratios = {}
  local function ratio(what, other)
    if other then ratios[#ratios + 1] = ("%s %.4g, ratio %.3f"):format(what, other * scale, value / other) end
  end
  ratio(limit_name, limit)
  ratio("NumPy", (median(in_numpy, name)))
  ratio("PyTorch", (median(in_torch, name)))
  print(line .. "  " .. table.concat(ratios, "; "))
  rows[#rows + 1] = {workload = workload, value = value, least = least, most = most, limit = limit,
    numpy = (median(in_numpy, name)), torch = (median(in_torch, name))}
end

print(("%d threads, median of %d rounds (spread); ratio: this program's time to the other's"):format(
  tensor.get_num_threads(), ROUNDS))
local executed = median(here, "warmup")
row("warm-up, enqueued only", "enqueue", "ms", 1e3, executed, "executed")
row("warm-up, with sync()", "warmup", "ms", 1e3, (median(bare, "warmup")), "ten bare products")
row("x + 1 on 1x2, executed", "small", "ns", 1e9)
row("randn(1000, 1000)", "randn", "ms", 1e3)
for _, case in ipairs {{"1 2 10000000", "10,000,000 temporaries of 1x2"},
                       {"1024 1024 10000", "10,000 temporaries of 4 MiB"}} do
  local peak = tonumber(read(program .. " tests/bench/temporaries.lua " .. case[1]))
  print(("%-34s %9.4g MiB at most"):format(case[2], peak))
  rows[#rows + 1] = {workload = case[2], peak_mib = peak}
end

-- The same as JSON, for other programs.
local function json(row_table)
  local fields = {}
  for key, value in pairs(row_table) do
    fields[#fields + 1] = ('"%s": %s'):format(key,
      type(value) == "string" and ('"%s"'):format(value) or ("%.9g"):format(value))
  end
  table.sort(fields)
  return "  {" .. table.concat(fields, ", ") .. "}"
end
local lines = {}
for i, row_table in ipairs(rows) do lines[i] = json(row_table) end
local path = helpers .. "/bench.json"
local file = assert(io.open(path, "w"))
file:write("[\n", table.concat(lines, ",\n"), "\n]\n")
file:close()
print("written to " .. path)
