// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// FuzzRead: whatever the part and the metrics contain, reading ends without a panic; samples that are accepted follow
// each other, and values are numbers.
func FuzzRead(f *testing.F) {
	f.Add(`{"samples":[{"at":1,"values":{"a":1}},{"at":2,"values":{"a":2},"pods":{"unbound":1,"areaNs":5}}]}`,
		"scheduler_pending_pods{queue=\"active\"} 3\nkumiki_paused 1\n")
	f.Add(`{"samples":[{"at":9223372036854775807,"probesNs":[9223372036854775807]}],"before":{"a":1e308}}`, "kumiki_paused{ 1\n")
	f.Fuzz(func(t *testing.T, data, metrics string) {
		if v, err := Parse(strings.NewReader(metrics)); err == nil {
			for series, n := range v {
				if math.IsNaN(n) || math.IsInf(n, 0) {
					t.Errorf("%q is %v", series, n)
				}
			}
		}
		d, err := Read(strings.NewReader(data))
		if err != nil {
			return
		}
		for i := 1; i < len(d.Samples); i++ {
			if d.Samples[i].At <= d.Samples[i-1].At {
				t.Errorf("sample %d is not after the one before", i)
			}
		}
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
	})
}
