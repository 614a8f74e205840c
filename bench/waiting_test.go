// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestSmallClusterThatChanges: pods that fit nowhere wait, nodes change in every way there is, pods that fit are bound.
// Catches changes that are not told, and pods that are counted as bound and are not.
func TestSmallClusterThatChanges(t *testing.T) {
	const rate = 100
	o := waitingOptions{waiting: 20, rate: rate, kinds: []string{"heartbeat", "label", "room"}, length: time.Second}
	o.Options = Options{Nodes: 5, Pods: 10, Rounds: 1, Schedulers: []string{Kumiki}, QPS: defaultQPS, Burst: defaultBurst, Timeout: 3 * time.Minute,
		Progress: t.Output()}
	r, err := waitWhileNodesChange(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Waited) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, row := range r.Waited {
		if row.Scheduler != Kumiki || row.Change != o.kinds[i] || row.Rate < rate/10 || row.Rate > 1.1*rate || row.PeakRSS == 0 {
			t.Errorf("%+v", row)
		}
		if row.Probes == 0 || row.Bound != row.Probes || row.P50 <= 0 || row.Max < row.P50 {
			t.Errorf("pods that fit: %+v", row)
		}
	}
	var table bytes.Buffer
	if err := r.write(&table, "table"); err != nil || !strings.Contains(table.String(), "heartbeat") {
		t.Errorf("%v: %s", err, table.String())
	}
}
