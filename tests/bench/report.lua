-- What the rounds gave, as two tables for people and as JSON for programs.
local report = {}

local SCALES = {ns = 1e9, us = 1e6, ms = 1e3, MiB = 1}

-- Median, least and most of a list, or nothing.
function report.summary(values)
  if not values or #values == 0 then return nil end
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local half = #sorted // 2
  local middle = #sorted % 2 == 1 and sorted[half + 1] or (sorted[half] + sorted[half + 1]) / 2
  return {median = middle, least = sorted[1], most = sorted[#sorted]}
end

-- Three digits, as short as they are: 0.0431, 5.12, 70.1, 1430.
local function digits(value)
  if value >= 100 then return ("%.0f"):format(value) end
  if value >= 10 then return ("%.1f"):format(value) end
  if value >= 1 then return ("%.2f"):format(value) end
  return (("%.3f"):format(value))
end

local function scaled(value, unit)
  return value and digits(value * SCALES[unit]) or "-"
end

-- Seconds in the unit that suits them: 340 ns, 1.25 ms.
local function time(seconds)
  if not seconds then return "-" end
  for _, unit in ipairs {"ns", "us", "ms"} do
    local value = seconds * SCALES[unit]
    if value < 999.5 then return digits(value) .. " " .. unit end
  end
  return digits(seconds) .. " s"
end

local function ratio(numerator, denominator)
  if not numerator or not denominator then return "-" end
  local value = numerator / denominator
  return value < 0.01 and ("%.4f"):format(value) or digits(value)
end

local function line(...)
  local text = ("%-31s %-3s %6s %-13s %7s %6s %7s %6s %7s %6s"):format(...)
  print((text:gsub("%s+$", "")))
end

-- rows: title, unit, and for here, limit, numpy, torch a summary or nil.
function report.workloads(rows)
  line("workload", "", "here", "spread", "limit", "x", "NumPy", "x", "PyTorch", "x")
  print(("-"):rep(100))
  for _, row in ipairs(rows) do
    local here = row.here
    local function of(who) return row[who] and row[who].median end
    local spread = ("%s..%s"):format(scaled(here.least, row.unit), scaled(here.most, row.unit))
    line(row.title, row.unit, scaled(here.median, row.unit), spread,
      scaled(of("limit"), row.unit), ratio(here.median, of("limit")),
      scaled(of("numpy"), row.unit), ratio(of("numpy"), here.median),
      scaled(of("torch"), row.unit), ratio(of("torch"), here.median))
  end
  print(("-"):rep(100))
end

-- medians(who, name) gives seconds or nil.
function report.growth(growth, medians)
  local head = {("%-8s %-8s"):format("size", "")}
  for _, size in ipairs(growth.sizes) do
    head[#head + 1] = ("%8s"):format(size < 10000 and size or ("10^%d"):format(#tostring(size) - 1))
  end
  print(table.concat(head, " "))
  print(("-"):rep(98))
  for _, cost in ipairs(growth.costs) do
    for i, column in ipairs {{"here", "here"}, {"numpy", "NumPy"}, {"torch", "PyTorch"}} do
      local who, label = table.unpack(column)
      local cells = {("%-8s %-8s"):format(i == 1 and cost.title or "", label)}
      for _, size in ipairs(growth.sizes) do
        local seconds = medians(who, ("grow.%s.%d"):format(cost.name, size))
        cells[#cells + 1] = ("%8s"):format(time(seconds))
      end
      print(table.concat(cells, " "))
    end
  end
  print(("-"):rep(98))
end

-- ---- JSON ---------------------------------------------------------------------------------------

-- Tables with numbers from 1 are arrays; the others are objects, by name.
local function json(value, indent)
  if type(value) == "string" then return '"' .. value:gsub('[%c"\\]', "") .. '"' end
  if type(value) == "number" then return ("%.9g"):format(value) end
  local inner, parts = indent .. "  ", {}
  if #value > 0 then
    for _, element in ipairs(value) do parts[#parts + 1] = inner .. json(element, inner) end
    return "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
  end
  for key, field in pairs(value) do
    parts[#parts + 1] = ('"%s": %s'):format(key, json(field, inner))
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

function report.write(path, results)
  local file = assert(io.open(path, "w"))
  file:write(json(results, ""), "\n")
  file:close()
end

return report
