// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/config"
)

// Catches: a plugin that stays at a point of its own, a profile that is forgotten, and what a workload's
// configuration says of other plugins lost on the way.
func TestAPluginIsTakenOutOfEveryProfile(t *testing.T) {
	for _, before := range []string{
		settings("/kubeconfig", 5, 5),
		settings("/kubeconfig", 5, 5) + "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}\n",
	} {
		text, err := disable(before, "PodTopologySpread")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, p := range c.Profiles {
			for point, names := range p.Enabled {
				if slices.Contains(names, "PodTopologySpread") {
					t.Errorf("profile %s has it at %s", p.SchedulerName, point)
				}
				if has := slices.Contains(names, "ImageLocality"); point == config.Score && has == (p.SchedulerName == "b") {
					t.Errorf("profile %s scores images: %v", p.SchedulerName, has)
				}
			}
		}
	}
}

// Catches: a workload's configuration that loses its profiles to ours, or that sends the scheduler to another API
// server.
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
	for name, want := range map[string]contestant{"kube-scheduler": {base: report.Upstream}, "kube-scheduler@100": {base: report.Upstream, percent: 100}, "kumiki@5": {base: report.Kumiki, percent: 5},
		"kumiki@sync": {base: report.Kumiki, settings: "sync"}, "kumiki@50~NodePorts": {base: report.Kumiki, percent: 50, plugin: "NodePorts"}, "kumiki@sync~NodePorts": {base: report.Kumiki, settings: "sync", plugin: "NodePorts"}} {
		if got, err := contestantOf(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"kumiki@", "kumiki@0", "kumiki@101", "null@50", "create-only@50", "null@file", "null~NodePorts", "create-only~NodePorts"} {
		if _, err := contestantOf(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	line, err := commandLine(Options{Gates: map[string]bool{"B": false, "A": true}}, "/opt/mine@50", "kc", "dir", 1)
	if err != nil || line[0] != "/opt/mine" || line[len(line)-1] != "--feature-gates=A=true,B=false" {
		t.Errorf("another program is started as %v, %v", line, err)
	}
}

// Catches: settings of a file that are not given to the scheduler, or are to the one beside it, that take the
// connection along, or stand for those of a workload that has its own; two files under one name in a report.
func TestSettingsOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const kind = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	sync := write("sync.yaml", kind+"clientConnection: {kubeconfig: elsewhere}\nprofiles: [{pluginConfig: [{name: Kumiki, args: {syncPreemption: true}}]}]\n")
	o := Options{Schedulers: []string{report.Kumiki, report.Kumiki + "@" + sync, report.Kumiki + "@" + sync + "~NodePorts"}, QPS: 1, Burst: 1}
	if err := o.readSettings(); err != nil {
		t.Fatal(err)
	}
	if want := []string{report.Kumiki, "kumiki@sync", "kumiki@sync~NodePorts"}; !slices.Equal(o.Schedulers, want) {
		t.Errorf("they are called %v, want %v", o.Schedulers, want)
	}
	for i, name := range o.Schedulers {
		text, err := o.settingsOf(name, "here")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if c.Profiles[0].SyncPreemption != (i > 0) || strings.Contains(text, "NodePorts") != (i == 2) || c.ClientConnection.Kubeconfig != "here" {
			t.Errorf("%s is started with\n%s", name, text)
		}
	}
	o.Config = kind
	if _, err := o.settingsOf("kumiki@sync", "here"); err == nil || !strings.Contains(err.Error(), "two are not put together") {
		t.Errorf("a workload with a configuration of its own: %v", err)
	}
	if _, err := o.settingsOf(report.Kumiki, "here"); err != nil {
		t.Error(err)
	}
	for what, names := range map[string][]string{
		"another file is called sync": {report.Kumiki + "@" + sync, report.Kumiki + "@" + write("other/sync.yaml", kind)},
		"no such file":                {report.Kumiki + "@" + filepath.Join(dir, "none.yaml")},
		"the name of a percentage":    {report.Kumiki + "@" + write("50.yaml", kind)},
	} {
		o := Options{Schedulers: names}
		if err := o.readSettings(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: %v, want %q", names, err, what)
		}
	}
}

// Catches: a file of settings that is there to be measured with and does not set what its name says.
func TestSettingsThatComeAlong(t *testing.T) {
	o := Options{Schedulers: []string{report.Kumiki + "@../workloads/settings/sync-preemption.yaml"}}
	if err := o.readSettings(); err != nil {
		t.Fatal(err)
	}
	text, err := o.settingsOf("kumiki@sync-preemption", "here")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := config.Parse([]byte(text)); err != nil || len(c.Profiles) != 1 || !c.Profiles[0].SyncPreemption {
		t.Errorf("%v\n%s", err, text)
	}
}

// The one file that all schedulers get is a configuration, and says what the flags say.
func TestSettingsAreAConfiguration(t *testing.T) {
	c, err := config.Parse([]byte(settings("/tmp/kube config", 5000, 4000)))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ClientConnection; got.Kubeconfig != "/tmp/kube config" || got.QPS != 5000 || got.Burst != 4000 || c.LeaderElection.Enabled {
		t.Errorf("got %+v, leader election %v", got, c.LeaderElection.Enabled)
	}
}

// TestSettingsThatAreVaried: parallelism is a field of the configuration, the number of concurrent binds an argument of
// kumiki in all profiles, beside others, and GOMAXPROCS is in the environment alone.
func TestSettingsThatAreVaried(t *testing.T) {
	profiles := "profiles:\n- schedulerName: a\n  pluginConfig:\n  - {name: Kumiki, args: {seed: 7}}\n- schedulerName: b\n"
	for _, c := range []struct {
		set    Setting
		config string
		want   []string
		not    string
	}{
		{Setting{Parallelism, 3}, "", []string{"parallelism: 3\n", "burst: 9"}, "profiles"},
		{Setting{InFlight, 5}, "", []string{"schedulerName: default-scheduler", "inFlightBinds: 5"}, "parallelism"},
		{Setting{InFlight, 5}, profiles, []string{"inFlightBinds: 5\n      seed: 7", "schedulerName: b"}, "default-scheduler"},
		{Setting{Procs, 2}, profiles, []string{"seed: 7"}, "2"},
		{Setting{}, profiles, []string{"seed: 7"}, "inFlightBinds"},
	} {
		o := Options{QPS: 9, Burst: 9, Config: c.config, Set: c.set}
		text, err := o.settingsOf("kumiki", "/k")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q in\n%s", c.set, want, text)
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%v: %q in\n%s", c.set, c.not, text)
		}
		l := c.set.limits(report.GoLimits{Procs: 8, GCPercent: 100})
		if want := map[bool]int{true: 2, false: 8}[c.set.Name == Procs]; l.Procs != want || l.GCPercent != 100 {
			t.Errorf("%v: limits %+v", c.set, l)
		}
	}
}
