// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Amount writes an amount of a resource: cores, bytes with a binary unit, or a count.
func Amount(resource string, value int64) string {
	switch {
	case value == math.MaxInt64: // what sums and quantities saturate at
		return "too large to count"
	case resource == "cpu":
		return cores(value)
	case resource == "memory", resource == "ephemeral-storage", strings.HasPrefix(resource, "hugepages-"):
		return bytes(value)
	}
	return strconv.FormatInt(value, 10)
}

// cores writes thousandths of a core: whole cores as 2, others as 1500m.
func cores(milli int64) string {
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	return strconv.FormatInt(milli, 10) + "m"
}

// bytes writes a number of bytes in the largest unit that keeps it at 1 or above, with a decimal unless it is whole.
func bytes(n int64) string {
	if n < 0 {
		return "-" + bytes(-max(n, -math.MaxInt64))
	}
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit, size := 0, int64(1)
	for unit+1 < len(units) && n/1024 >= size {
		unit, size = unit+1, size*1024
	}
	if n%size == 0 {
		return strconv.FormatInt(n/size, 10) + units[unit]
	}
	return fmt.Sprintf("%.1f%s", float64(n)/float64(size), units[unit])
}

// Amounts writes a list such as "cpu 2, memory 4Gi".
func Amounts(list []record.ResourceAmount) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = a.Resource + " " + Amount(a.Resource, a.Value)
		if a.Overflowed {
			parts[i] = a.Resource + " too large to count"
		}
	}
	return strings.Join(parts, ", ")
}

// Ago is the time between two moments, as kubectl writes ages.
func Ago(from, to record.Time) string {
	d := max(time.Duration(to-from), 0)
	if d > 0 && d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return duration.HumanDuration(d)
}

// count writes a number with its noun: "1 node", "2 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
