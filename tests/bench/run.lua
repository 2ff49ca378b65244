-- make bench: what each workload takes here, in NumPy and PyTorch, and at the limit that bare loops
-- in C and bare BLAS set.  All are measured in one run, each in a process of its own once a round,
-- so that what else the machine does falls on all of them; a figure is the median of the rounds.
--
-- TENSORLUA is the program, BENCH_BUILD the folder of the helpers in C.  BENCH_ROUNDS is how many
-- rounds (5); BENCH_SIZES=0 leaves out how costs grow with size; BENCH_ONLY=mm measures only what
-- has that in its name.
local report = dofile("tests/bench/report.lua")
local workloads = dofile("tests/bench/workloads.lua")

local program = os.getenv("TENSORLUA") or arg[-1]
local helpers = os.getenv("BENCH_BUILD") or "build/bench"
local rounds = math.tointeger(os.getenv("BENCH_ROUNDS") or 5)
local only = os.getenv("BENCH_ONLY") or ""
local sizes = os.getenv("BENCH_SIZES") ~= "0"
local threads = tensor.get_num_threads()

local function read(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  local succeeded = pipe:close()
  return succeeded and text or nil, text
end

-- Ticks that all processes of the machine took, those of this one and its children, and all there
-- were, or nothing where /proc does not tell.
local function processor_ticks()
  local machine = read("head -n 1 /proc/stat 2>/dev/null")
  local file = io.open("/proc/self/stat")
  if not machine or not file then return nil end
  local own = file:read("a"):match("%) %S" .. (" %S+"):rep(10) .. "(.*)")
  file:close()
  local counts, ours = {}, 0
  for count in machine:gmatch("%d+") do counts[#counts + 1] = tonumber(count) end
  for count in own:match("%S+ %S+ %S+ %S+"):gmatch("%d+") do ours = ours + tonumber(count) end
  local user, nice, system, idle, iowait, irq, softirq, steal = table.unpack(counts)
  local busy = user + nice + system + irq + softirq + steal
  return busy, ours, busy + idle + iowait
end

-- ---- who is measured ----------------------------------------------------------------------------

-- The first python3 that has the library, and the library's version.
local function python_with(library)
  for _, python in ipairs {"python3", "/usr/bin/python3"} do
    local version = read(("%s -c 'import %s; print(%s.__version__)' 2>/dev/null"):format(python,
      library, library))
    if version then return python, version:match("%S+") end
  end
end

local who = { -- in the order of a round; each command prints lines "workload seconds"
  {key = "limit", commands = {
    ("OPENBLAS_NUM_THREADS=%d %s/blas"):format(threads, helpers),
    ("%s/stream %d"):format(helpers, threads)}},
  {key = "here", commands = {program .. " tests/bench/here.lua"}},
}
local peers = {}
for _, peer in ipairs {{"numpy", "NumPy"}, {"torch", "PyTorch"}} do
  local library, title = peer[1], peer[2]
  local python, version = python_with(library)
  peers[#peers + 1] = {key = library, title = title, version = version, python = python}
  if python then
    who[#who + 1] = {key = library,
      commands = {("%s tests/bench/peers.py %s %d"):format(python, library, threads)}}
  end
end

-- Starting is measured from outside: a command for each of those above.
local ONE_LINE = "print(tensor.ones(1, 2) + 1)"
local starts = {here = ("%s -e '%s'"):format(program, ONE_LINE), limit = "lua5.4 -e ''"}
for _, peer in ipairs(peers) do
  if peer.python then
    starts[peer.key] = ("%s -c 'import %s as t; print(t.ones((1, 2)) + 1)'"):format(peer.python,
      peer.key)
  end
end

-- ---- the rounds ---------------------------------------------------------------------------------

local measured = {limit = {}, here = {}, numpy = {}, torch = {}} -- by name, a value a round

local function note(key, name, value)
  local values = measured[key][name] or {}
  measured[key][name] = values
  values[#values + 1] = tonumber(value)
end

local function spawn(count, command)
  local text = read(("%s/spawn %d %s"):format(helpers, count, command))
  if text then return text:match("(%S+) (%S+)") end
end

local busy_before, own_before, all_before = processor_ticks()
for round = 1, rounds do
  io.stderr:write(("round %d of %d\n"):format(round, rounds))
  for _, one in ipairs(who) do
    for _, command in ipairs(one.commands) do
      local succeeded, text = read(command)
      if not succeeded then io.stderr:write("bench: failed: ", command, "\n") end
      for name, value in text:gmatch("(%S+) (%S+)\n") do note(one.key, name, value) end
    end
    if ("start"):find(only, 1, true) and starts[one.key] then
      local seconds, mebibytes = spawn(one.key == "torch" and 1 or 5, starts[one.key])
      if seconds then
        note(one.key, "start", seconds)
        note(one.key, "start.memory", mebibytes)
      end
    end
  end
end
for _, case in ipairs {{"1 2 10000000", "temporaries.small"},
                       {"1024 1024 10000", "temporaries.large"}} do
  if case[2]:find(only, 1, true) then
    local _, mebibytes = spawn(1, program .. " tests/bench/temporaries.lua " .. case[1])
    note("here", case[2], mebibytes)
  end
end

-- The share of the cores' time that went to others, who make all figures worse.
local others
if busy_before then
  local busy, own, all = processor_ticks()
  others = ((busy - busy_before) - (own - own_before)) / (all - all_before)
end

-- ---- the report ---------------------------------------------------------------------------------

measured.limit["warmup.enqueue"] = measured.here.warmup

local rows = {}
local function row(name, title, unit, limit)
  if not measured.here[name] then return end
  local result = {name = name, title = title, unit = unit, limit_is = limit}
  for key, values in pairs(measured) do result[key] = report.summary(values[name]) end
  rows[#rows + 1] = result
end
for _, workload in ipairs(workloads.rows) do
  row(workload.name, workload.title, workload.unit, workload.limit)
end
row("start", "start-up of one line", "ms", "lua5.4 -e ''")
row("start.memory", "its resident memory", "MiB", "lua5.4 -e ''")
row("temporaries.small", "10,000,000 temporaries of 1x2", "MiB")
row("temporaries.large", "10,000 temporaries of 4 MiB", "MiB")

local function version_of(peer)
  return peer.version and ("%s %s"):format(peer.title, peer.version)
    or ("no %s"):format(peer.title)
end
print(("%d threads, medians of %d rounds; %s, %s"):format(threads, rounds, version_of(peers[1]),
  version_of(peers[2])))
if others then print(("others took %.0f%% of the cores' time meanwhile"):format(100 * others)) end
print("x: the time here in times of the limit's; the time of a peer in times of that here")
print()
report.workloads(rows)

local grown = {}
if sizes then
  print()
  print("How costs grow with the number of elements")
  print()
  report.growth(workloads.growth, function(key, name)
    local summary = report.summary(measured[key][name])
    return summary and summary.median
  end)
  for _, workload in ipairs(workloads.growth.rows) do
    local result = {name = workload.name}
    for key, values in pairs(measured) do result[key] = report.summary(values[workload.name]) end
    grown[#grown + 1] = result
  end
end

local path = helpers .. "/bench.json"
report.write(path, {
  threads = threads, rounds = rounds, others = others,
  numpy = peers[1].version, torch = peers[2].version,
  workloads = rows, sizes = sizes and grown or nil,
})
print("\nlimits: bare BLAS or one loop in C, of the same run; all in " .. path)
