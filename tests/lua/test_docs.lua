-- The examples of README.md and docs/ print what they are said to print.
--
-- A block ```lua is a script of its own; a block ```output behind it is what the script prints,
-- standard error included (without tracebacks).  ```lua fault=mm:1 injects a fault.
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

os.exit(lu.LuaUnit.run())
