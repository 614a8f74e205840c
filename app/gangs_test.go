// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

const (
	groupPath    = "/apis/scheduling.k8s.io/v1beta1/podgroups"
	groupPath136 = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
	sigsPath     = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
	inGroup      = "schedulingGroup: {podGroupName: g}, "
)

// TestADropInTakesPodGroupsInWhenTheyCome: pods that name a group are placed one by one, as by a scheduler that does
// not know groups, until the API server serves them; from then on they wait for their group and its pods. There is no
// log line about an API that a drop-in replacement does not need. Catches members that wait without limit for an
// unreadable group, and a readable group that is ignored.
func TestADropInTakesPodGroupsInWhenTheyCome(t *testing.T) {
	t.Parallel()
	for release, path := range map[string]string{"1.36": groupPath136, "1.37": groupPath} {
		for name, before := range map[string]func(*testing.T, *apiServer){
			"not served": func(t *testing.T, api *apiServer) { api.serve(t, release, false) },
			"forbidden": func(t *testing.T, api *apiServer) {
				api.serve(t, release, true)
				api.forbid(path)
			},
		} {
			t.Run(name+" by "+release, func(t *testing.T) {
				t.Parallel()
				takesPodGroupsIn(t, release, path, before)
			})
		}
	}
}

func takesPodGroupsIn(t *testing.T, release, path string, before func(*testing.T, *apiServer)) {
	api := newAPIServer(t)
	before(t, api)
	api.node(t, "n1")
	api.pod(t, "early", inGroup)
	r := start(t, api)
	r.binds(t, api, "early")
	if got := r.kinds(); len(got) > 0 {
		t.Errorf("said to be missing: %q", got)
	}
	api.serve(t, release, true)
	api.forbid()
	eventually(t, r, "pod groups are read", func() bool {
		return len(r.lines("Objects of a kind can be read now")) > 0
	})
	// The line is logged before the loop has the list. A pod that is created in between is placed alone.
	late := ""
	eventually(t, r, "a pod waits for its group", func() bool {
		if late == "" || api.nodeOf(late) != "" {
			late += "late"
			api.pod(t, late, inGroup)
		}
		return r.rejected(t, late)
	})
	api.put(t, path, "{metadata: {namespace: default, name: g}, spec: {schedulingPolicy: {gang: "+
		"{minCount: 2}}}}")
	r.binds(t, api, late) // early is a member and holds its place
}

// TestAKindOfGangsThatComesLater: the switch is on and the resource is not defined yet. The pods wait, the log says
// once what is missing, others are placed, and when the definition and the object come, the pods are placed without a
// restart. Catches a start that waits for a definition.
func TestAKindOfGangsThatComesLater(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t)
	api.serve(t, "1.36", false)
	api.node(t, "n1")
	for _, name := range []string{"a", "b"} {
		api.put(t, "/api/v1/pods", fmt.Sprintf("{metadata: {namespace: default, name: %s, labels: "+
			"{scheduling.x-k8s.io/pod-group: g}}, spec: {schedulerName: default-scheduler, "+
			"containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}, status: {phase: Pending}}", name))
	}
	api.pod(t, "solo", "")
	r := startWith(t, api, func(o *Options) { o.Config.Kumiki.Gangs.Sigs = config.On })
	r.binds(t, api, "solo")
	if missing := r.lines("podgroups.scheduling.x-k8s.io"); len(missing) != 1 ||
		!strings.Contains(missing[0], "pods of the gangs that they declare wait") {
		t.Errorf("said of what is missing: %q", missing)
	}
	eventually(t, r, "the pods wait", func() bool { return r.rejected(t, "a") && r.rejected(t, "b") })
	api.define(sigsPath, "PodGroup")
	api.put(t, sigsPath, "{metadata: {namespace: default, name: g}, spec: {minMember: 2}}")
	r.binds(t, api, "a")
	r.binds(t, api, "b")
}

// TestSwitchesOfGangs: what a file says is what counts.
func TestSwitchesOfGangs(t *testing.T) {
	for _, c := range []struct {
		say  config.Gangs
		want convert.GangRules
	}{
		{config.DefaultGangs(), convert.GangRules{Group: true, GroupIfRead: true}},
		{config.Gangs{PodGroup: config.Off, Annotation: config.Off, Sigs: config.Off, Volcano: config.Off},
			convert.GangRules{}},
		{config.Gangs{PodGroup: config.On, Annotation: config.Off, Sigs: config.Off, Volcano: config.Off},
			convert.GangRules{Group: true}},
		{config.Gangs{PodGroup: config.Off, Annotation: config.On, Sigs: config.Off, Volcano: config.Off},
			convert.GangRules{Annotation: true}},
		{config.Gangs{PodGroup: config.Off, Annotation: config.Off, Sigs: config.On, Volcano: config.Off},
			convert.GangRules{Sigs: true}},
		{config.Gangs{PodGroup: config.Off, Annotation: config.Off, Sigs: config.Off, Volcano: config.On,
			Pfnet: "a.b/c"}, convert.GangRules{Volcano: true, Pfnet: "a.b/c"}},
	} {
		if got := gangRules(c.say, config.DefaultFeatures()); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: got %+v, want %+v", c.say, got, c.want)
		}
		c.want.GroupPolicy = true
		if got := gangRules(c.say, config.Features{PodGroupPreemptionPolicy: true}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, with policies of groups: got %+v, want %+v", c.say, got, c.want)
		}
	}
}

// TestWhoMayBeEvictedForGangs: declarations of pods count while capacity is held and every profile evicts for gangs.
func TestWhoMayBeEvictedForGangs(t *testing.T) {
	hold := func(text string) string {
		return "  pluginConfig:\n  - name: Kumiki\n    args: {gangs: {hold: {" + text + "}}}\n"
	}
	for _, c := range []struct {
		name, file string
		want       bool
		classes    []string
	}{
		{"default", "", true, nil},
		{"a class", hold("evictablePriorityClasses: [spare]"), true, []string{"spare"}},
		{"no backfill", hold("backfill: Off, evictablePriorityClasses: [spare]"), false, nil},
		{"no hold", hold("for: 0s"), false, nil},
		{"no preemption", "  plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}\n", false, nil},
		{"no preemption for groups", "  plugins: {podGroupPostFilter: {disabled: [{name: DefaultPreemption}]}}\n", false,
			nil},
	} {
		parsed, err := Plugins{}.ParseConfig([]byte(fileWith(c.file)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		rules := GangRules(parsed)
		if rules.Evictable != c.want || !slices.Equal(rules.EvictableClasses, c.classes) {
			t.Errorf("%s: %v %v, want %v %v", c.name, rules.Evictable, rules.EvictableClasses, c.want, c.classes)
		}
	}
}
