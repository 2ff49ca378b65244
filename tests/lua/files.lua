-- What the suites of files share: a folder of their own, its files, and values of each dtype.

local lu = require "luaunit"
local support = require "support"

local M = {}

M.folder = select(2, support.shell "mktemp -d"):match "%S+"

function M.path(name) return M.folder .. "/" .. name end

-- The names in the folder.
function M.listing() return select(2, support.shell("ls -A " .. M.folder)) end

-- The bytes that saving gives.
function M.saved(name, ...)
  tensor.save(M.path(name), ...)
  return support.read_file(M.path(name))
end

-- Whether this build has a dtype.
function M.has(dtype) return tensor[dtype] ~= nil end

function M.assert_same(x, y, what)
  lu.assertEquals(x.shape, y.shape, what)
  lu.assertEquals(x.dtype, y.dtype, what)
  lu.assertTrue(tensor.equal(x, y), what)
end

-- Runs the suites, and leaves no folder behind.
function M.run()
  local status = lu.LuaUnit.run()
  support.shell("rm -rf " .. M.folder)
  os.exit(status)
end

return M
