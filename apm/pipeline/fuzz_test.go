// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/record"
)

// FuzzWhy: whatever the samples and the times of pods are, looking for the bottleneck ends without a panic. Its values are
// numbers, shares are from 0 to 1, and a cause is named only if there is one.
func FuzzWhy(f *testing.F) {
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		return string(text)
	}
	const at = record.Time(2e9)
	timing := record.Timing{Journeys: []record.Journey{{Pod: record.PodRef{Namespace: "shop", Name: "web", UID: "1"},
		Began: at, Ended: at + 3e9, End: record.EndBound, Attempts: 1, Spans: []record.PhaseSpan{{Start: at, Took: 1e9},
			{Phase: record.PhaseActive, Start: at + 1e9, Took: 1e9}, {Phase: record.PhaseSent, Start: at + 2e9, Took: 1e9, Attempt: 1}}}}}
	slow := history{gauges: join(map[string]float64{active: 50}), counters: join(kumiki(0.9, "idle", nil), binds(20, 100*ms, 80*ms)),
		api: handled(100, 50*ms, ms, ms)}
	f.Add(encode(slow.document()), encode(timing), int64(1e9), int64(6e9))
	f.Add(`{"samples":[{"at":1,"values":{"scheduler_pending_pods":1e308}},{"at":9223372036854775807,"values":{"scheduler_pending_pods":1e308}}]}`,
		`{}`, int64(0), int64(0))
	f.Fuzz(func(t *testing.T, samples, timing string, began, ended int64) {
		var out bytes.Buffer
		w := bundle.NewWriter(&out)
		for kind, text := range map[bundle.Kind]string{bundle.Samples: samples, bundle.Timing: timing} {
			p := bundle.Part{Kind: kind, Began: time.Unix(0, began), Ended: time.Unix(0, ended)}
			if err := w.Add(p, strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			return // JSON does not have the year
		}
		b, err := bundle.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bundle.DefaultLimits)
		if err != nil {
			return
		}
		v, err := Why(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
		if v.Known != (v.NotKnown == "") || v.Known && len(v.Findings) == 0 || v.Explained < 0 || v.PodSeconds < 0 {
			t.Errorf("%+v", v)
		}
		for _, one := range v.Findings {
			if one.PodSeconds < 0 || one.Share < 0 || one.Share > 1.000001 || one.Gain.Saved < 0 || one.Gain.Saved > 1.000001 {
				t.Errorf("%+v", one)
			}
		}
	})
}
