-- Tensors in files: .npy, .npz, .safetensors, raw bytes and CSV.
--
-- Saving waits for the values, and writes a temporary file that takes the place of the old one when
-- all is written; loading gives a tensor that is there.  A file that is not as it should be is
-- refused in one sentence.
local _, internal = ...
local fail = internal.fail
local codec = internal.require "tensor.codec"
local formats = internal.require "tensor.formats"
local csv, npy = internal.require "tensor.csv", internal.require "tensor.npy"
local npz, safetensors = internal.require "tensor.npz", internal.require "tensor.safetensors"
local quote, describe = codec.quote, codec.describe

-- ---- arguments ----

-- How the messages about a file begin.
local function prefix_of(name, path)
  if type(path) ~= "string" then
    fail(("%s: the path must be a string, not %s"):format(name, describe(path)))
  end
  return ("%s: %s"):format(name, quote(path))
end

local function refuse_more(name, most, ...)
  local more = select("#", ...)
  if more > 0 then
    fail(("%s: %d arguments are too many: at most %d"):format(name, most + more, most))
  end
end

-- The options, of which only those in the list `allowed` may be given.
local function check_options(name, options, allowed)
  if options == nil then return {} end
  if type(options) ~= "table" then
    fail(("%s: the options must be a table, not %s"):format(name, describe(options)))
  end
  local known = {}
  for _, key in ipairs(allowed) do known[key] = true end
  for key in next, options do
    if not known[key] then
      fail(("%s: unknown option %s: %s"):format(
        name, describe(key), allowed[1] and table.concat(allowed, ", ") or "there are none here"))
    end
  end
  return options
end

-- An option that must be of a type, where it is given.
local function check_option(name, options, key, kind)
  local value = options[key]
  local found = kind == "integer" and math.type(value) or type(value)
  if value ~= nil and (found ~= kind or kind == "integer" and value < 0) then
    fail(("%s: the option %s must be a %s, not %s"):format(
      name, key, kind == "integer" and "number from 0" or kind, describe(value)))
  end
  return value
end

local function check_dtype(name, options)
  local dtype = options.dtype
  if dtype == nil then return "float32" end
  if type(dtype) ~= "string" or not internal.dtype_size(dtype) then
    fail(("%s: %s is not a dtype"):format(name, describe(dtype)))
  end
  return dtype
end

-- `what` is a tensor that can be read.
local function check_tensor(name, what, x)
  local open = internal.is_open(x)
  if open == nil then
    fail(("%s: %s must be a tensor, not %s"):format(name, what, describe(x)))
  elseif not open then
    fail(("%s: %s is a tensor that has been closed"):format(name, what))
  end
end

-- ---- save and load ----

local KNOWN = {npy = true, npz = true, safetensors = true}

local function extension_of(name, prefix, path)
  local extension = (path:match "%.(%w+)$" or ""):lower()
  if not KNOWN[extension] then
    fail(("%s must end in .npy, .npz or .safetensors; raw bytes are for %s"):format(
      prefix, name == "save" and "tofile" or "fromfile"))
  end
  return extension
end

-- The names in a table of tensors, sorted.
local function names_of(prefix, extension, tensors)
  local names = {}
  for name, x in next, tensors do
    if type(name) ~= "string" or name:find "%z" then
      fail(("%s: a tensor's name must be a string without zeros, as in {weight = w}, not %s")
           :format(prefix, describe(name)))
    end
    check_tensor("save", quote(name), x)
    if extension == "npz" then npz.check(prefix, name, x) else safetensors.check(prefix, name) end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function save(path, x, options, ...)
  refuse_more("save", 3, ...)
  local prefix = prefix_of("save", path)
  local extension = extension_of("save", prefix, path)
  options = check_options("save", options, {extension == "npz" and "compress" or nil})
  check_option("save", options, "compress", "boolean")
  local names
  if extension == "npy" then
    check_tensor("save", "what .npy holds", x)
    npy.check(prefix, x)
  else
    if type(x) ~= "table" then
      fail(("save: .%s holds a table of tensors, {name = x}, not %s"):format(
        extension, internal.is_open(x) ~= nil and "a tensor" or describe(x)))
    end
    names = names_of(prefix, extension, x)
  end
  local writer <close> = internal.open_writer(prefix, path)
  if extension == "npy" then
    npy.write(writer, x)
  elseif extension == "npz" then
    npz.write(writer, names, x, options.compress)
  else
    safetensors.write(writer, names, x)
  end
  writer:commit()
  return path
end

local function load(path, ...)
  refuse_more("load", 1, ...)
  local prefix = prefix_of("load", path)
  local extension = extension_of("load", prefix, path)
  local reader <close> = internal.open_reader(prefix, path)
  return (formats.read(extension, reader, prefix)) -- of .npy there is a checksum, too
end

-- ---- raw bytes ----

local function tofile(x, path, ...)
  internal.check("tofile", x)
  refuse_more("tofile", 2, ...)
  local writer <close> = internal.open_writer(prefix_of("tofile", path), path)
  writer:tensor(x)
  writer:commit()
  return path
end

local function fromfile(path, options, ...)
  refuse_more("fromfile", 2, ...)
  local prefix = prefix_of("fromfile", path)
  options = check_options("fromfile", options, {"dtype", "count", "offset"})
  local dtype = check_dtype("fromfile", options)
  local count = check_option("fromfile", options, "count", "integer")
  local offset = check_option("fromfile", options, "offset", "integer") or 0
  local reader <close> = internal.open_reader(prefix, path)
  local size = internal.dtype_size(dtype)
  if offset > reader:size() then
    reader:fail(("has %d bytes, and none at %d"):format(reader:size(), offset))
  end
  reader:enter(offset, reader:size() - offset)
  if not count then
    count = reader:left() // size
    if reader:left() % size > 0 then
      reader:fail(("has %d bytes from %d on, no multiple of the %d of a %s"):format(
        reader:left(), offset, size, dtype))
    end
  end
  return reader:tensor(dtype, false, {count})
end

-- ---- CSV ----

local function check_delimiter(name, options)
  local delimiter = check_option(name, options, "delimiter", "string") or ","
  if #delimiter ~= 1 or delimiter:find '[%w"\r\n.+-]' then
    fail(("%s: %s cannot be a delimiter: one character, and none of a number's"):format(
      name, quote(delimiter)))
  end
  return delimiter
end

local function load_csv(path, options, ...)
  refuse_more("load_csv", 2, ...)
  local prefix = prefix_of("load_csv", path)
  options = check_options("load_csv", options, {"delimiter", "header", "dtype"})
  local header = check_option("load_csv", options, "header", "boolean")
  local delimiter, dtype = check_delimiter("load_csv", options), check_dtype("load_csv", options)
  local reader <close> = internal.open_reader(prefix, path)
  return formats.read("csv", reader, prefix,
                      {delimiter = delimiter, header = header, dtype = dtype})
end

local function check_names(names, columns)
  if names == nil then return end
  for i = 1, columns do
    if type(names[i]) ~= "string" then
      fail(("save_csv: the header must have %d names, and name %d is %s"):format(
        columns, i, describe(names[i])))
    end
  end
  if #names > columns then
    fail(("save_csv: the header has %d names for %d columns"):format(#names, columns))
  end
end

local function save_csv(path, x, options, ...)
  refuse_more("save_csv", 3, ...)
  local prefix = prefix_of("save_csv", path)
  check_tensor("save_csv", "argument 2", x)
  options = check_options("save_csv", options, {"delimiter", "header"})
  local delimiter = check_delimiter("save_csv", options)
  local names = check_option("save_csv", options, "header", "table")
  if x.ndim == 1 then x = x:reshape(x:numel(), 1) end
  if x.ndim ~= 2 then
    fail(("save_csv: wants 1 or 2 dimensions, not %d"):format(x.ndim))
  end
  check_names(names, x.shape[2])
  local writer <close> = internal.open_writer(prefix, path)
  csv.write(writer, x, delimiter, names)
  writer:commit()
  return path
end

return {
  {"save", save, method = false,
   doc = "save(path, x): x to a .npy file, or {name = x, ...} to an .npz or .safetensors file; " ..
         "{compress = true} deflates an .npz; waits for the values, and returns the path",
   example = [[tensor.save("/tmp/example.npy", tensor{1, 2})]], value = "/tmp/example.npy"},
  {"load", load, method = false,
   doc = "load(path): the tensor in a .npy file, or the table of those in an .npz or .safetensors",
   example = [[tensor.load(tensor.save("/tmp/example.npz", {x = tensor{1, 2}})).x]],
   value = "tensor([1., 2.])"},
  {"tofile", tofile,
   doc = "tofile(x, path): the elements in row-major order as little-endian bytes; waits for them",
   example = [[tensor{1, 2}:tofile("/tmp/example.bin")]], value = "/tmp/example.bin"},
  {"fromfile", fromfile, method = false,
   doc = "fromfile(path [, {dtype =, count =, offset =}]): the elements in a file of bytes; " ..
         "the offset counts bytes",
   example = [[tensor.fromfile(tensor{1, 2, 3}:tofile("/tmp/example.bin"), {offset = 4})]],
   value = "tensor([2., 3.])"},
  {"save_csv", save_csv, method = false,
   doc = "save_csv(path, x [, {delimiter =, header = names}]): rows as lines of numbers; waits",
   example = [[tensor.save_csv("/tmp/example.csv", tensor{{1, 2}, {3, 4}})]],
   value = "/tmp/example.csv"},
  {"load_csv", load_csv, method = false,
   doc = "load_csv(path [, {delimiter =, header = true, dtype =}]): rows x columns, and the " ..
         "names in the first line if it is a header",
   example = [[tensor.load_csv(tensor.save_csv("/tmp/example.csv", tensor{{1, 2}, {3, 4}}))]],
   value = "tensor([[1., 2.],\n        [3., 4.]])"},
}
