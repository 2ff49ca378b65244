-- The examples of README.md and docs/ print what they are said to print.
--
-- A block ```lua is a script of its own; a block ```output behind it is what the script prints,
-- standard error included (without tracebacks).  ```lua fault=mm:1 injects a fault.
--
-- In a table whose last columns are `Lua` and `prints`, each line's Lua is run, behind the block
-- ```lua names of its page; the results, or the error, are what is beside it, without line breaks.
package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
local lu = require "luaunit"

local PROGRAM = os.getenv("TENSORLUA") or "build/tensorlua"
if PROGRAM:sub(1, 1) ~= "/" then PROGRAM = os.getenv("PWD") .. "/" .. PROGRAM end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

local function run(path, code, fault)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local name = path:match("[^/]*$")
  local script = folder .. "/" .. name
  local file = assert(io.open(script, "w"))
  file:write(code)
  file:close()
  -- The text is about the asynchronous mode: in the other one a fault comes earlier than it says.
  local pipe = io.popen(("cd %s && TENSORLUA_SYNC=0 %s %s %s 2>&1"):format(folder,
    fault and "TENSORLUA_FAULT=" .. fault or "", PROGRAM, name))
  local output = pipe:read("a")
  pipe:close()
  os.remove(script)
  os.remove(folder)
  output = output:gsub("stack traceback:\n.*", "")
  return (output:gsub(PROGRAM:gsub("%p", "%%%0") .. ": ", "tensorlua: "))
end

-- Calls f(code, options, output or nil) for each block.
local function for_each_block(text, f)
  local code, options, output, inside
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if inside then
      if line == "```" then
        if inside == "output" then
          f(code, options, output)
          code = nil
        end
        inside = nil
      elseif inside == "lua" then
        code = code .. line .. "\n"
      elseif inside == "output" then
        output = output .. line .. "\n"
      end
    elseif line:match("^```") then
      inside = line:match("^```(%a*)")
      if inside == "lua" then
        if code then f(code, options, nil) end
        code, options = "", line:sub(7)
      elseif inside == "output" then
        output = ""
      end
    end
  end
  if code then f(code, options, nil) end
end

-- The cells of a table's line.
local function cells_of(line)
  local cells = {}
  for cell in line:gsub("\\|", "\0"):gmatch "|([^|]+)%f[|]" do
    cells[#cells + 1] = (cell:gsub("%z", "|"):match "^%s*(.-)%s*$")
  end
  return cells
end

-- Calls f(code, what is said to be printed) for each line of such tables.
local function for_each_line(text, f)
  local inside = false
  for line in text:gmatch "[^\n]*" do
    local cells = line:sub(1, 1) == "|" and cells_of(line) or {}
    local n = #cells
    if n == 0 then
      inside = false
    elseif cells[n - 1] == "Lua" and cells[n] == "prints" then
      inside = true
    elseif inside and not cells[n]:match "^%-+$" then
      f(cells[n - 1]:match "^`([^`]+)`", cells[n])
    end
  end
end

-- What a line's code gives, as the table says it.
local function printed_by(code, names)
  local chunk = load(names .. " return " .. code, "=line") or assert(load(names .. code, "=line"))
  local lines, real = {}, print
  function print(text) lines[#lines + 1] = text end
  local results = table.pack(pcall(chunk))
  print = real
  for i = 2, results.n do lines[#lines + 1] = tostring(results[i]) end
  if not results[1] then -- without the places, one of which only the asynchronous mode has
    lines[1] = lines[1]:gsub("^line:%d+: ", ""):gsub(" %(queued at [^)]*%)$", "")
  end
  for i, text in ipairs(lines) do
    lines[i] = "`" .. text:gsub("\n%s*", " "):gsub("|", "\\|") .. "`"
  end
  return (results[1] and "" or "error: ") .. table.concat(lines, " ")
end

TestDocs = {}

local paths = {"README.md"}
for path in io.popen("ls docs/*.md"):lines() do paths[#paths + 1] = path end

for _, path in ipairs(paths) do
  TestDocs["test_" .. path] = function()
    local examples = 0
    for_each_block(read(path), function(code, options, output)
      examples = examples + 1
      local printed = run(path, code, options:match("fault=(%S+)"))
      if output then
        lu.assertEquals(printed, output)
      else
        lu.assertNil(printed:match("tensorlua: "), printed)
      end
    end)
    lu.assertTrue(examples > 0)
  end
end

function TestDocs:test_lines_of_tables()
  local threads, count = tensor.get_num_threads(), 0
  for _, path in ipairs(paths) do
    local text = read(path)
    local names = text:match "\n```lua names\n(.-)```\n" or ""
    for_each_line(text, function(code, said)
      lu.assertEquals(printed_by(code, names), said, path .. ": " .. code)
      tensor.set_printoptions{profile = "default"}
      tensor.set_num_threads(threads)
      count = count + 1
    end)
  end
  lu.assertTrue(count > 100, count .. " lines")
end

os.exit(lu.LuaUnit.run())
