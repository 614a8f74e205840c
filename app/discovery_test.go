// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// What is done about an API that is missing: the scheduler asks again after 1, 2, 4 and at last every 60 seconds,
// goes on as if the kind had no objects (a right may come 5 seconds late, as it does while an API server starts), and
// says once what does not work meanwhile. When the API comes, or the right, its objects are used; when it goes, those
// that were known stay. Pods and nodes are waited for.

// running is a scheduler at work against an API server of a test.
type running struct {
	*Scheduler
	log ktesting.Buffer
}

// start runs a scheduler until the test ends. The test fails when it ends earlier.
func start(t *testing.T, api *apiServer) *running { return startWith(t, api, func(*Options) {}) }

// startWith is start with changed options.
func startWith(t *testing.T, api *apiServer, change func(*Options)) *running {
	t.Helper()
	log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	ctx, end := context.WithCancel(klog.NewContext(t.Context(), log))
	o := DefaultOptions()
	o.Rest = api.config()
	o.Serve.Secure = nil
	o.Config.LeaderElection.Enabled = false
	o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
	change(&o)
	s, err := NewScheduler(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-over; err != nil {
			t.Errorf("the scheduler ended: %v", err)
		}
	})
	return &running{s, log.GetSink().(ktesting.Underlier).GetBuffer()}
}

// lines are the lines of the log with a text, in order.
func (r *running) lines(text string) []string {
	var found []string
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// kinds are the kinds that the log says cannot be read, sorted; one that it says twice is there twice.
func (r *running) kinds() []string {
	var kinds []string
	for _, line := range r.lines("Objects of a kind cannot be read") {
		_, rest, _ := strings.Cut(line, `kind="`)
		kind, _, _ := strings.Cut(rest, `"`)
		kinds = append(kinds, kind)
		if !strings.Contains(line, "so=") {
			kinds = append(kinds, "without a consequence: "+line)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// eventually waits until holds, which reports whether the condition is met, returns true; the limit only ends a test
// that hangs.
func eventually(t *testing.T, r *running, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: not after a minute; the log:\n%s", what, r.log.String())
		}
	}
}

func (r *running) binds(t *testing.T, api *apiServer, pod string) {
	t.Helper()
	eventually(t, r, pod+" is bound", func() bool { return api.nodeOf(pod) != "" })
}

// TestEveryReleaseIsServed starts against what API servers of several releases serve, as they come and with every
// preview switched on, and with watches that begin with a list or without: a pod is bound, and what is not there is
// said, once. Catches a kind that is asked for in a version that a release does not have.
func TestEveryReleaseIsServed(t *testing.T) {
	t.Parallel()
	devices := []string{"DeviceClass", "ResourceClaim", "ResourceSlice"} // resource.k8s.io/v1 came with 1.34
	for release, missing := range map[string][]string{"1.33": devices, "1.34": nil, "1.35": nil, "1.36": nil,
		"1.37": nil} {
		for _, all := range []bool{false, true} {
			name := release
			if all {
				name += " with previews"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				api := newAPIServer(t)
				api.serve(t, release, all)
				api.streams = all
				api.node(t, "n1")
				api.pod(t, "p", "")
				r := start(t, api)
				r.binds(t, api, "p")
				if got := r.kinds(); !slices.Equal(got, missing) {
					t.Errorf("said to be missing: %q, want %q", got, missing)
				}
				var unserved []string
				for path := range api.unknown { // order: sorted below
					resource, _, _ := split(path)
					unserved = append(unserved, resource)
				}
				slices.Sort(unserved)
				if unserved = slices.Compact(unserved); len(unserved) != len(missing) {
					t.Errorf("asked for what is not served: %q, want only %q", unserved, missing)
				}
			})
		}
	}
}

// bare are the only things that a scheduler cannot do without.
var bare = []string{"/api/v1/pods", "/api/v1/nodes", "/apis/events.k8s.io/v1/events"}

func theRest(api *apiServer) []string {
	return slices.DeleteFunc(api.served(), func(path string) bool { return slices.Contains(bare, path) })
}

// TestPodsAndNodesAreEnough: whatever else is not served, or may not be read, has a line in the log, and pods are
// bound. Catches a start that waits for a list that never comes.
func TestPodsAndNodesAreEnough(t *testing.T) {
	t.Parallel()
	var all []string
	for _, kind := range kindsOf(t, Plugins{}, DefaultOptions().Config) {
		all = append(all, string(kind))
	}
	slices.Sort(all)
	// DeviceTaintRule is not served by every supported release, so its absence alone has no line.
	served := slices.DeleteFunc(slices.Clone(all), func(kind string) bool { return kind == "DeviceTaintRule" })
	for name, c := range map[string]struct {
		take func(*apiServer)
		want []string
	}{
		"not served": {func(api *apiServer) { api.withdraw(theRest(api)...) }, served},
		"forbidden":  {func(api *apiServer) { api.forbid(theRest(api)...) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			api.serve(t, "1.37", false)
			c.take(api)
			api.node(t, "n1")
			api.pod(t, "p", "")
			r := start(t, api)
			r.binds(t, api, "p")
			if got := r.kinds(); !slices.Equal(got, c.want) {
				t.Errorf("said to be missing: %q, want %q", got, c.want)
			}
		})
	}
}

// TestWithoutPodsOrNodesNothingIsDecided, and the process waits: it says so, is not synced, and goes on when it may
// read them. Catches decisions about a cluster that looks empty.
func TestWithoutPodsOrNodesNothingIsDecided(t *testing.T) {
	t.Parallel()
	for _, path := range bare[:2] {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			api.serve(t, "1.36", false)
			api.forbid(path)
			api.node(t, "n1")
			api.pod(t, "p", "")
			r := start(t, api)
			_, resource, _ := strings.Cut(path, "/api/v1/")
			eventually(t, r, "the log names "+resource, func() bool {
				return len(r.lines("Failed to watch")) > 0 && strings.Contains(r.log.String(), `watch="`+resource+`"`)
			})
			select {
			case <-r.Synced():
				t.Error("synced without " + resource)
			default:
			}
			if node := api.nodeOf("p"); node != "" {
				t.Errorf("bound to %s without a list of %s", node, resource)
			}
			api.forbid()
			r.binds(t, api, "p")
		})
	}
}

const (
	claimPath = "/apis/resource.k8s.io/v1/resourceclaims"
	// allocatedClaim is one that is allocated and reserved for its pod: nothing is left to be written.
	allocatedClaim = "{metadata: {namespace: default, name: gpu}, spec: {devices: {}}, status: {allocation: " +
		"{devices: {}}, " +
		"reservedFor: [{resource: pods, name: late, uid: uid-of-late}]}}"
	ofClaim = "resourceClaims: [{name: gpu, resourceClaimName: gpu}], "
)

// rejected reports whether the scheduler says of a pod that it waits.
func (r *running) rejected(t *testing.T, pod string) bool {
	t.Helper()
	waits := false
	if err := r.Ask(t.Context(), func(e *engine.Engine) {
		report, known := question.New(e.View()).ExplainPod("default", pod)
		waits = known && (report.Where == record.Gated || report.Where == record.Unschedulable)
	}); err != nil {
		t.Fatal(err)
	}
	return waits
}

// TestAnAPIThatComesLaterIsUsed: an API server is upgraded while a scheduler runs. The pod that waited for an
// unreadable claim is bound without a restart. Catches a scheduler that gives up on a kind. (A right that is granted
// later has the same effect: kube, TestAKindThatCannotBeReadCountsAsEmpty.)
func TestAnAPIThatComesLaterIsUsed(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t)
	api.serve(t, "1.33", false)
	api.node(t, "n1")
	api.pod(t, "late", ofClaim)
	api.pod(t, "plain", "")
	r := start(t, api)
	r.binds(t, api, "plain")
	eventually(t, r, "the pod waits for the claim that cannot be read", func() bool { return r.rejected(t, "late") })
	api.serve(t, "1.34", false)
	api.put(t, claimPath, allocatedClaim)
	r.binds(t, api, "late")
	eventually(t, r, "three kinds are said to be there", func() bool {
		return len(r.lines("Objects of a kind can be read now")) == 3
	})
}

// TestRulesOfANewerAPIServerAreRead: 1.36 does not serve DeviceTaintRule in v1, which needs no line in the log and no
// right. After an upgrade of the API server, the rules are read, or their absence is logged if the right is missing.
// Catches a kind whose absence is reported to every user of an older release, or to none of a newer one.
func TestRulesOfANewerAPIServerAreRead(t *testing.T) {
	t.Parallel()
	const path = "/apis/resource.k8s.io/v1/devicetaintrules"
	api := newAPIServer(t)
	api.serve(t, "1.36", false)
	api.forbid(path)
	api.node(t, "n1")
	api.pod(t, "p", "")
	r := start(t, api)
	r.binds(t, api, "p")
	if got := r.kinds(); len(got) > 0 {
		t.Errorf("said to be missing: %q", got)
	}
	api.serve(t, "1.37", false)
	api.put(t, path, "{metadata: {name: worn}, spec: {deviceSelector: {}, taint: {key: worn, effect: NoSchedule}}}")
	eventually(t, r, "the missing right is logged", func() bool {
		return slices.Equal(r.kinds(), []string{"DeviceTaintRule"})
	})
	api.forbid()
	eventually(t, r, "the rule is known", func() bool {
		known := false
		if err := r.Ask(t.Context(), func(e *engine.Engine) {
			_, known = cluster.Find[*resourceapi.DeviceTaintRule](e.View().Snapshot(), "", "worn")
		}); err != nil {
			t.Fatal(err)
		}
		return known
	})
}

// TestAnAPIThatGoesIsDoneWithout: an upgrade is rolled back while a scheduler runs. It keeps what it knew, reports
// once that there will be no more, and binds pods. Catches a watch whose end removes everything.
func TestAnAPIThatGoesIsDoneWithout(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t)
	api.serve(t, "1.34", false)
	api.put(t, claimPath, allocatedClaim)
	api.node(t, "n1")
	r := start(t, api)
	api.pod(t, "first", "")
	r.binds(t, api, "first")
	api.serve(t, "1.33", false)
	gone := []string{"DeviceClass", "ResourceClaim", "ResourceSlice"}
	eventually(t, r, "three kinds are said to be gone", func() bool { return slices.Equal(r.kinds(), gone) })
	api.pod(t, "late", ofClaim)
	api.pod(t, "plain", "")
	r.binds(t, api, "plain")
	r.binds(t, api, "late") // by what was known of its claim
	if got := r.kinds(); !slices.Equal(got, gone) {
		t.Errorf("said to be gone: %q, want %q", got, gone)
	}
}
