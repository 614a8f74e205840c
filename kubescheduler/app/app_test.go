// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	kumikiapp "github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/apptest"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// withTurns returns kumiki's plugins with Turns, as NewSchedulerCommand makes them.
func withTurns(t *testing.T) kumikiapp.Plugins {
	t.Helper()
	regs, err := Registrations(WithPlugin(turnsName, newTurns))
	if err != nil {
		t.Fatal(err)
	}
	out, err := kumikiapp.Plugins{}.WithFramework(regs...)
	if err != nil {
		t.Fatal(err)
	}
	return out.WithFrameworkHooks(Hooks())
}

// TestPodsToActivate: a pod that no event wakes is tried again when a plugin names it in PodsToActivate.
func TestPodsToActivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, turnsConfig, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `node n
pod b label.follows=a
  b waits: 0/1 nodes are available: waits for a in profile default-scheduler. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
pod a
  a runs on n, 1 of 1 nodes fit, score 0
  b runs on n, 1 of 1 nodes fit, score 0
`
	got, err := apptest.Play(withTurns(t), file, script)
	if err != nil {
		t.Fatal(err)
	}
	// Scores are not the subject.
	if got = regexp.MustCompile(`score \d+`).ReplaceAllString(got, "score 0"); got != script {
		t.Errorf("decisions:\n%s", got)
	}
}

// TestArgumentsOfTheScheme: arguments have the type that the scheme has for the plugin, with its defaults; strictly.
// Those of other plugins stay as they are.
func TestArgumentsOfTheScheme(t *testing.T) {
	raw := func(text string) runtime.Object {
		if text == "" {
			return nil
		}
		return &runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}
	}
	for _, tt := range []struct {
		name, text string
		want       func(runtime.Object) bool
		wrong      string
	}{
		{turnsName, `{"label": "x"}`, func(o runtime.Object) bool { return o.(*TurnsArgs).Label == "x" }, ""},
		{turnsName, "", func(o runtime.Object) bool { return o.(*TurnsArgs).Label == "after" }, ""},
		{turnsName, `{"labl": "x"}`, nil, `unknown field "labl"`},
		{"InterPodAffinity", `{"hardPodAffinityWeight": 7}`, func(o runtime.Object) bool {
			return o.(*config.InterPodAffinityArgs).HardPodAffinityWeight == 7
		}, ""},
		{"Other", `{"a": 1}`, func(o runtime.Object) bool { return string(o.(*runtime.Unknown).Raw) == `{"a": 1}` }, ""},
		{"Other", "", func(o runtime.Object) bool { return o == nil }, ""},
	} {
		got, err := arguments(tt.name, raw(tt.text))
		switch {
		case tt.wrong != "":
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s %s: %v, want %s", tt.name, tt.text, err, tt.wrong)
			}
		case err != nil || !tt.want(got):
			t.Errorf("%s %s: %#v, %v", tt.name, tt.text, got, err)
		}
	}
}

// TestTypoInArguments: a file with arguments that the scheme does not accept is an error with line, column and field.
func TestTypoInArguments(t *testing.T) {
	p := withTurns(t)
	for args, want := range map[string]string{ // order: each is read
		"{labl: x}":  "line 6, column 12: profiles[0].pluginConfig[0].args.labl: unknown field",
		"{label: 5}": "line 6, column 12: profiles[0].pluginConfig[0].args.label: ",
		"{label: x}": "",
	} {
		_, err := p.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
			"profiles:\n- pluginConfig:\n  - name: " + turnsName + "\n    args: " + args + "\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// handleOf returns the Handle that a plugin of a profile has.
func handleOf(t *testing.T) upstream.Framework {
	t.Helper()
	p := withTurns(t)
	c, err := p.ParseConfig(fmt.Appendf(nil, turnsConfig, ""))
	if err != nil {
		t.Fatal(err)
	}
	var got upstream.Framework
	regs, err := Registrations(WithPlugin(turnsName, func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		got = h.(upstream.Framework)
		if n := len(got.ListPlugins().Filter.Enabled); n > 0 || got.HasScorePlugins() {
			t.Errorf("while factories run, the profile lists %d filters", n)
		}
		return newTurns(ctx, args, h)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = (kumikiapp.Plugins{}).WithFramework(regs...); err != nil {
		t.Fatal(err)
	}
	if _, err := p.EngineConfig(c); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFrameworkOfTheHandle: the Handle lists the plugins of the profile, native ones too.
func TestFrameworkOfTheHandle(t *testing.T) {
	f := handleOf(t)
	listed := f.ListPlugins()
	names := func(set config.PluginSet) (out []string) {
		for _, p := range set.Enabled {
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(listed.PreFilter); !slices.Contains(got, turnsName) || !slices.Contains(got, "NodeResourcesFit") {
		t.Errorf("at PreFilter: %v", got)
	}
	if got := names(listed.Filter); slices.Contains(got, turnsName) {
		t.Errorf("at Filter, which Turns does not extend: %v", got)
	}
	for _, p := range listed.Score.Enabled {
		if p.Name == "TaintToleration" && p.Weight != 3 {
			t.Errorf("the weight of %s is %d", p.Name, p.Weight)
		}
	}
	if !f.HasFilterPlugins() || !f.HasPostFilterPlugins() || !f.HasScorePlugins() || f.PercentageOfNodesToScore() != nil {
		t.Error("the profile filters, scores and evicts, and has no percentage")
	}
	if f.ProfileName() != "default-scheduler" {
		t.Errorf("profile %q", f.ProfileName())
	}
}

// present are the methods of framework.Framework, beyond those of Handle, that answer.
var present = []string{"GetNodeHint", "HasFilterPlugins", "HasPostFilterPlugins", "HasScorePlugins", "ListPlugins",
	"PercentageOfNodesToScore", "WillWaitOnPermit"}

// TestAbsentMethodsFail: each method that framework.Framework adds to Handle is in docs/plugins.md, and an absent one returns or panics
// with framework.ErrAbsent: no plugin takes a zero value for an answer.
func TestAbsentMethodsFail(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "plugins.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, value := string(text), reflect.ValueOf(handleOf(t))
	ofHandle := reflect.TypeFor[fwk.Handle]()
	for i, all := 0, reflect.TypeFor[upstream.Framework](); i < all.NumMethod(); i++ {
		method := all.Method(i)
		if _, own := ofHandle.MethodByName(method.Name); own {
			continue
		}
		if !regexp.MustCompile(`\b` + method.Name + `\b`).MatchString(page) {
			t.Errorf("docs/plugins.md does not have %s", method.Name)
		}
		if slices.Contains(present, method.Name) {
			continue
		}
		if err := outcome(value.MethodByName(method.Name)); !errors.Is(err, framework.ErrAbsent) {
			t.Errorf("%s: %v, want ErrAbsent", method.Name, err)
		}
	}
}

// outcome calls a method with zero arguments and returns its error, the error of its status, or that of its panic.
func outcome(method reflect.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err, _ = r.(error)
		}
	}()
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		in = append(in, reflect.Zero(method.Type().In(i)))
	}
	for _, out := range method.Call(in) {
		switch v := out.Interface().(type) {
		case *fwk.Status:
			return v.AsError()
		case error:
			return v
		}
	}
	return nil
}

// TestMetricsExistAndAreNotRegisteredTwice: plugins can count in upstream's variables, and /metrics is kumiki's.
func TestMetricsExistAndAreNotRegisteredTwice(t *testing.T) {
	if c := NewSchedulerCommand(WithPlugin(turnsName, newTurns)); c.Name() != "kube-scheduler" {
		t.Fatalf("the command is %s", c.Name())
	}
	metrics.PreemptionVictims.Observe(1)
	metrics.PreemptionAttempts.Inc()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "scheduler_") {
			t.Errorf("%s of upstream is served", f.GetName())
		}
	}
}

// TestOptionsThatFail: the error of an option, such as a name that is taken, is the error of the command.
func TestOptionsThatFail(t *testing.T) {
	for wrong, options := range map[string][]Option{ // order: each is run
		"a plugin named Turns already exists": {WithPlugin(turnsName, newTurns), WithPlugin(turnsName, newTurns)},
		"the name belongs to kumiki":          {WithPlugin("NodeResourcesFit", newTurns)},
	} {
		c := NewSchedulerCommand(options...)
		c.SetArgs([]string{"--config", "none.yaml"})
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(&bytes.Buffer{})
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("error %v, want %s", err, wrong)
		}
	}
}
