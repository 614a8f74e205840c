// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// named is a verdict that names a cause, with a predicted rate.
func named(c bottleneck.Cause, placed, predicted float64) bottleneck.Verdict {
	return bottleneck.Verdict{Known: true, Placed: placed, Findings: []bottleneck.Finding{{Cause: c, Share: 0.9,
		What: c.What(), Setting: c.Setting(), Gain: bottleneck.Gain{PerSecond: predicted}}}}
}

// TestChange: the setting of a bottleneck is changed where bench has it, and else the reason is said.
func TestChange(t *testing.T) {
	for name, c := range map[string]struct {
		v          bottleneck.Verdict
		qps        float32
		want       string
		set        int
		qpsAfter   float32
		notChanged string
	}{
		"low limit on binds":     {named(bottleneck.InFlightLimit, 100, 400), 5000, "inFlightBinds=100", 100, 5000, ""},
		"default limit on binds": {named(bottleneck.InFlightLimit, 100, 0), 5000, "inFlightBinds=400", 400, 5000, ""},
		"low qps":                {named(bottleneck.ClientLimit, 20, 300), 20, "qps=5000, burst=5000", 0, 5000, ""},
		"high qps":               {named(bottleneck.ClientLimit, 20, 300), 5000, "", 0, 5000, "qps is 5000 already"},
		"a slow etcd":            {named(bottleneck.Etcd, 20, 0), 5000, "", 0, 5000, "cannot change the setting for etcd: disk"},
		"not known":              {bottleneck.Verdict{NotKnown: "too little"}, 5000, "", 0, 5000, "not known: too little"},
	} {
		o := testbed.Options{QPS: c.qps, Burst: 5000}
		changed, unchanged := change(&c.v, &o)
		if changed != c.want || !strings.Contains(unchanged, c.notChanged) || (changed == "") == (unchanged == "") ||
			o.Set.Value != c.set || o.QPS != c.qpsAfter {
			t.Errorf("%s: changed %q, unchanged because %q, %+v, qps %g", name, changed, unchanged, o.Set, o.QPS)
		}
	}
}

// TestProof: the predicted factor is that of the profiled run, and the gain is compared with the median of the others.
func TestProof(t *testing.T) {
	p := Proof{Workload: "basic/small", Scheduler: "kumiki", Verdict: named(bottleneck.InFlightLimit, 50, 200),
		Change: "inFlightBinds=100", Before: []float64{90, 100, 300}, After: []float64{350, 370, 10}}
	p.predict()
	if r, known := p.Ratio(); !known || p.Predicted != 400 || math.Abs(r-250.0/300) > 1e-9 {
		t.Errorf("predicted %.1f, ratio %.3f, known %v", p.Predicted, r, known)
	}
	text := map[string]string{}
	for _, format := range []string{"table", "json", "yaml"} {
		var out bytes.Buffer
		if err := p.Write(&out, format); err != nil {
			t.Fatal(err)
		}
		text[format] = out.String()
	}
	for _, want := range []string{"Bottleneck:  in-flight-limit (", "Before:      100 pods/s", "Change:      inFlightBinds=100",
		"Predicted:   400 pods/s", "After:       350 pods/s", "Gain:        0.83 of the prediction"} {
		if !strings.Contains(text["table"], want) {
			t.Errorf("no %q in\n%s", want, text["table"])
		}
	}
	var back Proof
	if err := json.Unmarshal([]byte(text["json"]), &back); err != nil || back.Predicted != 400 ||
		!strings.Contains(text["yaml"], "predicted: 400") {
		t.Errorf("error %v, %s%s", err, text["json"], text["yaml"])
	}
	none := Proof{Verdict: bottleneck.Verdict{NotKnown: "too little"}, Unchanged: "it is not known", Before: []float64{9}}
	none.predict()
	if _, known := none.Ratio(); known || !strings.Contains(none.table(), "Change:      none: it is not known") ||
		!strings.Contains(none.table(), "not known: too little") {
		t.Errorf("without a bottleneck:\n%s", none.table())
	}
}

// TestProveRefuses: several workloads or schedulers, and one that cannot be profiled.
func TestProveRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"takes one scheduler":  {"--workload=basic", "--match=small", "--scheduler=kumiki,kube-scheduler"},
		"that can be profiled": {"--workload=basic", "--match=small", "--scheduler=null"},
		"takes one workload":   {"--match=.", "--scheduler=kumiki"},
		"table, json or yaml":  {"--workload=basic", "--match=small", "--scheduler=kumiki", "-o=html"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(append(args, "--prove"))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
