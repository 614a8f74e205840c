// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// gates is a plugin of kube-scheduler's framework that extends PreEnqueue alone.
type gates struct{}

func (gates) Name() string { return "Gates" }

func (gates) PreEnqueue(context.Context, *v1.Pod) *fwk.Status { return nil }

// TestUndeclaredPoints: a plugin whose points are not declared runs, when multiPoint enables it, at the points that it
// extends, and is an error at a point that names it and that it does not extend.
func TestUndeclaredPoints(t *testing.T) {
	var handle fwk.Handle
	var during config.Profile
	p, err := Plugins{}.WithFramework(framework.Registration{Name: "Gates", Undeclared: true,
		Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			handle = h
			during, _ = framework.ConfigOf(h)
			return gates{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for profile, wrong := range map[string]string{ // order: each is compared
		"{multiPoint: {enabled: [{name: Gates}]}}":                                    "",
		"{score: {enabled: [{name: Gates}]}}":                                         "does not extend this point",
		"{multiPoint: {enabled: [{name: Gates}]}, score: {enabled: [{name: Gates}]}}": "does not extend this point",
		"{multiPoint: {enabled: [{name: Gates}], disabled: [{name: PrioritySort}]}}":  "exactly one plugin must sort the queue, got 0",
		"{multiPoint: {enabled: [{name: Gates}]}, bind: {disabled: [{name: DefaultBinder}]}}": "at least one plugin must " +
			"bind",
	} {
		c, err := p.ParseConfig([]byte(fileWith("  plugins: " + profile + "\n")))
		if err != nil {
			t.Errorf("%s: %v", profile, err)
			continue
		}
		made, err := p.EngineConfig(c)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", profile, err, wrong)
		}
		if err != nil {
			continue
		}
		if len(made.Profiles[0].Gates) == 0 || made.Profiles[0].Gates[len(made.Profiles[0].Gates)-1].Name() != "Gates" {
			t.Errorf("%s: gates %v", profile, made.Profiles[0].Gates)
		}
		settled, ok := framework.ConfigOf(handle)
		var at []config.Point
		for _, point := range config.Points() {
			if settled.Runs(point, "Gates") {
				at = append(at, point)
			}
		}
		if !ok || !reflect.DeepEqual(at, []config.Point{config.PreEnqueue}) || len(during.Enabled) != 0 {
			t.Errorf("%s: the profile runs it at %v; while it was made, %v", profile, at, during.Enabled)
		}
	}
}

// evicts is a plugin that extends PodGroupPostFilter too, as one does that is made from upstream's DefaultPreemption.
type evicts struct{ gates }

func (evicts) PodGroupPostFilter(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo,
	fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return nil, nil
}

// TestPointsOfPodGroups: where multiPoint enables a plugin at a point of pod groups, it is left out there if the
// scheduler has none, as nothing would call it; else that point, which is not hosted, is an error.
func TestPointsOfPodGroups(t *testing.T) {
	p, err := Plugins{}.WithFramework(framework.Registration{Name: "Gates", Undeclared: true,
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return evicts{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, groups := range []bool{false, true} {
		features := config.DefaultFeatures()
		features.GenericWorkload = groups
		with := p.With(features)
		c, err := with.ParseConfig([]byte(fileWith("  plugins: {multiPoint: {enabled: [{name: Gates}]}}\n")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = with.EngineConfig(c)
		if (err != nil) != groups || err != nil && !strings.Contains(err.Error(), "podGroupPostFilter") {
			t.Errorf("pod groups %t: error %v", groups, err)
		}
	}
}

// ofGroups is a plugin of kube-scheduler's framework that extends one of the points for pod groups.
type ofGroups struct{}

func (ofGroups) Name() string { return "OfGroups" }

type helps struct{ ofGroups }

func (helps) PodGroupPostFilter(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo,
	fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return nil, nil
}

// TestAbsentPoints: a profile that enables a plugin at a point that is absent is rejected. The error names the plugin
// and the point, and says how to disable the plugin there.
func TestAbsentPoints(t *testing.T) {
	for _, c := range []struct {
		pl fwk.Plugin
		at config.Point
	}{
		{helps{}, config.PodGroupPostFilter},
	} {
		p, err := Plugins{}.WithFramework(framework.Registration{Name: "OfGroups", Type: c.pl,
			Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return c.pl, nil }})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []config.Point{"multiPoint", c.at} {
			file, err := p.ParseConfig([]byte(fileWith("  plugins: {" + string(at) + ": {enabled: [{name: OfGroups}]}}\n")))
			if err == nil {
				_, err = p.EngineConfig(file)
			}
			want := "plugins: {" + string(c.at) + ": {disabled: [{name: OfGroups}]}}"
			if err == nil || !strings.Contains(err.Error(), `plugin "OfGroups"`) || !strings.Contains(err.Error(), want) {
				t.Errorf("enabled at %s: error %v, want %q", at, err, want)
			}
		}
	}
}
