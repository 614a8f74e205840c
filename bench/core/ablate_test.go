// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestKumikiWorksWithoutEachPlugin: catches a plugin that others lean on, and one that stays at some point of the profile
// although it was taken away.
func TestKumikiWorksWithoutEachPlugin(t *testing.T) {
	o := Options{Nodes: []int{120}, Families: regexp.MustCompile("^(basic|spread by zone)$"), Pods: 30, Runs: 1, Contenders: []Contender{Kumiki(0)}, Progress: io.Discard}
	names := []string{KumikiName}
	for _, name := range Ablatable() {
		o.Contenders = append(o.Contenders, Without(name, 0))
		names = append(names, "without "+name)
	}
	runs, err := Measure(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := Summarize(names, runs)
	if len(r.Ablations) != 2*len(Ablatable()) {
		t.Fatalf("%d ablations of %d plugins and two families", len(r.Ablations), len(Ablatable()))
	}
	for _, a := range r.Ablations {
		if a.Plugin == "PodTopologySpread" && a.Family == "spread by zone" && (a.PathsWith[record.Grouped] != 1 || a.PathsWithout[record.Ranked] != 1) {
			t.Errorf("pods that spread are placed by %v, and without the plugin by %v, want groups and then ranks", a.PathsWith, a.PathsWithout)
		}
	}
	var table bytes.Buffer
	if err := r.write(&table, "table"); err != nil || !strings.Contains(table.String(), "InterPodAffinity") {
		t.Errorf("%v, the table is\n%s", err, table.String())
	}
}

// TestWhatAPluginCosts: catches medians that are subtracted where runs should be, and a share of the wrong whole.
func TestWhatAPluginCosts(t *testing.T) {
	with := []Run{{Nodes: 100, CPUNanoseconds: 300, P99Nanoseconds: 1000}, {Nodes: 100, CPUNanoseconds: 100, P99Nanoseconds: 2000}, {Nodes: 100, CPUNanoseconds: 900, P99Nanoseconds: 4000}}
	without := []Run{{Nodes: 100, CPUNanoseconds: 200, P99Nanoseconds: 750}, {Nodes: 100, CPUNanoseconds: 50, P99Nanoseconds: 1000}, {Nodes: 100, CPUNanoseconds: 100, P99Nanoseconds: 4000}}
	a := ablation("P", with, without)
	if want := (Spread{100, 50, 800}); a.Cost != want {
		t.Errorf("it costs %v, want %v", a.Cost, want)
	}
	if want := (Spread{1, 0.5, 8}); a.PerNode != want {
		t.Errorf("it costs %v for a node, want %v", a.PerNode, want)
	}
	if want := (Spread{0.25, 0, 0.5}); a.ShareOfP99 != want {
		t.Errorf("its share is %v, want %v", a.ShareOfP99, want)
	}
}

// TestPluginsThatCannotBeTakenAway are mistakes of who types. Catches a name that is spelled wrong and measured as nothing.
func TestPluginsThatCannotBeTakenAway(t *testing.T) {
	for _, name := range []string{"NodeResourceFit", "PrioritySort", ""} {
		cmd := NewCommand()
		cmd.SetArgs([]string{"--ablate", "InterPodAffinity," + name, "--nodes", "100"})
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		var usage interface{ Usage() }
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "there are SchedulingGates, ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
