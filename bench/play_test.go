// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/config"
)

func decided(name, node string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Conditions: conditions}}
}

// Catches: a workload's configuration that loses its profiles to ours, or that sends the scheduler to another API server.
func TestSettingsOfAWorkload(t *testing.T) {
	text, err := settingsWith(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: elsewhere, qps: 1}
podMaxBackoffSeconds: 42
`, "here", 5000, 4000, 100)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.ClientConnection.Kubeconfig != "here" || c.ClientConnection.QPS != 5000 || c.LeaderElection.Enabled {
		t.Errorf("the connection is %+v", c.ClientConnection)
	}
	if !strings.Contains(text, "podMaxBackoffSeconds: 42") || !strings.Contains(text, "percentageOfNodesToScore: 100") {
		t.Errorf("the file is\n%s", text)
	}
}

// Catches: a percentage that is not read, or is taken where it means nothing.
func TestNamesOfSchedulers(t *testing.T) {
	for name, want := range map[string]int{"kube-scheduler": 0, "kube-scheduler@100": 100, "kumiki@5": 5} {
		if _, got, err := split(name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, bad := range []string{"kumiki@", "kumiki@0", "kumiki@101", "null@50", "create-only@50"} {
		if _, _, err := split(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	line, err := commandLine(Options{gates: map[string]bool{"B": false, "A": true}}, "/opt/mine@50", "kc", "dir", 1)
	if err != nil || line[0] != "/opt/mine" || line[len(line)-1] != "--feature-gates=A=true,B=false" {
		t.Errorf("a program of somebody else is started as %v, %v", line, err)
	}
}

// Catches: what happened before measuring counted, a quantile that is no interpolation, series of other labels mixed in.
func TestHistogramsAreThoseOfTheTimeBetween(t *testing.T) {
	wanted := []workload.Metric{{Name: "m_seconds", Labels: []workload.MetricLabel{{Label: "result", Values: []string{"ok"}}}}}
	parse := func(text string) scraped {
		s, err := parseMetrics(text, wanted)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := parse(`m_seconds_bucket{result="ok",le="1"} 5
m_seconds_bucket{result="ok",le="2"} 5
m_seconds_bucket{result="ok",le="+Inf"} 5
m_seconds_sum{result="ok"} 2
m_seconds_count{result="ok"} 5
scheduler_schedule_attempts_total{profile="p",result="ok"} 5
`)
	after := parse(`# HELP m_seconds of no interest
m_seconds_bucket{result="ok",le="1"} 15
m_seconds_bucket{result="ok",le="2"} 25
m_seconds_bucket{result="ok",le="+Inf"} 25
m_seconds_sum{result="ok"} 22
m_seconds_count{result="ok"} 25
m_seconds_count{result="bad"} 99
other_seconds_count 3
scheduler_schedule_attempts_total{profile="p",result="ok"} 27
`)
	got := scraped{}
	got.add(before, after)
	items := got.items(wanted)
	if len(items) != 1 || got.attempts() != 22 {
		t.Fatalf("%d attempts, items %v", got.attempts(), items)
	}
	if d := items[0].Data; d["Average"] != 1000 || d["Perc50"] != 1000 || d["Perc90"] != 1800 {
		t.Errorf("20 samples of 20 seconds, half of them above 1: %v", d)
	}
}
