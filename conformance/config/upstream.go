// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	internal "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Stage is a stage in which upstream can refuse a file. It goes no further then.
type Stage int

// The stages. In Validating it looks at values but knows no plugins; Making refuses at the first thing that is wrong.
const (
	Making Stage = iota
	Validating
	Decoding
)

// Answer is what one of the two makes of a configuration file.
type Answer struct {
	// Paths are the fields that are wrong, sorted and without repetition; a field that the side does not name is "".
	// Empty means that the file is accepted.
	Paths []string
	// Text is the error in full; Problems are its parts where the side tells them apart.
	Text     string
	Problems []string
	// Stage is how far upstream came.
	Stage Stage
	// Effective is the effective configuration of an accepted file; nil otherwise.
	Effective *Effective
}

// Accepted reports whether the file can be started with.
func (a Answer) Accepted() bool { return len(a.Paths) == 0 }

// quiet drops upstream's log lines; what it says about a file is in its errors.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// Upstream asks kube-scheduler.
func Upstream(text []byte) Answer {
	quiet()
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		a := refused(err)
		a.Stage = Decoding
		return a
	}
	c, ok := obj.(*internal.KubeSchedulerConfiguration)
	if !ok {
		return Answer{Paths: []string{""}, Text: fmt.Sprintf("the file is a %s", gvk)}
	}
	c.APIVersion = gvk.GroupVersion().String()
	if errs := validation.ValidateKubeSchedulerConfiguration(c); errs != nil {
		a := refused(errs)
		a.Stage = Validating
		return a
	}
	effective, err := start(c)
	if err != nil {
		return refused(err)
	}
	return Answer{Effective: effective}
}

// start makes upstream's scheduler without running it. What it was made of is the effective configuration.
func start(c *internal.KubeSchedulerConfiguration) (*Effective, error) {
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	defer stop()
	client := fake.NewClientset()
	var completed []internal.KubeSchedulerProfile
	recorder := profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	s, err := scheduler.New(ctx, client, informers.NewSharedInformerFactory(client, 0), nil, recorder,
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(c.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(c.PodInitialBackoffSeconds),
		scheduler.WithExtenders(c.Extenders...),
		scheduler.WithParallelism(c.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(p internal.KubeSchedulerProfile) { completed = append(completed, p) }),
	)
	if err != nil {
		return nil, err
	}
	defer s.Profiles.Close()
	defer s.SchedulingQueue.Close()
	versioned, err := scheme.Scheme.ConvertToVersion(c, configv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	out := &Effective{}
	if out.Process, err = process(versioned); err != nil {
		return nil, err
	}
	for _, p := range completed {
		made := Profile{Name: p.SchedulerName, Percentage: *c.PercentageOfNodesToScore, Plugins: listed(s.Profiles[p.SchedulerName].ListPlugins())}
		if share := p.PercentageOfNodesToScore; share != nil {
			made.Percentage = *share
		}
		if made.Args, err = arguments(p); err != nil {
			return nil, fmt.Errorf("reading upstream's profile %s: %w", p.SchedulerName, err)
		}
		out.Profiles = append(out.Profiles, made)
	}
	return out, nil
}

// refused collects the fields that an error names.
func refused(err error) Answer {
	a := Answer{Text: err.Error()}
	a.collect(err)
	slices.Sort(a.Paths)
	a.Paths = slices.Compact(a.Paths)
	return a
}

func (a *Answer) collect(err error) {
	var many utilerrors.Aggregate
	if errors.As(err, &many) {
		for _, e := range many.Errors() {
			a.collect(e)
		}
		return
	}
	var one *field.Error
	if errors.As(err, &one) {
		a.Paths = append(a.Paths, one.Field)
		return
	}
	a.Paths = append(a.Paths, named(err.Error())...)
}

var (
	// unknownField is how strict decoding names what it does not know, or finds twice.
	unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)
	// fieldError is a field.Error that upstream wrapped as text.
	fieldError = regexp.MustCompile(`([A-Za-z][A-Za-z0-9.\[\]]*): (?:Invalid value|Required value|Unsupported value|Forbidden|Duplicate value)`)
)

// named finds the fields that a text names, each as upstream has it: those of plugin arguments are often without what
// leads to them. A text that names none stands for one field without a name.
func named(text string) []string {
	var out []string
	for _, pattern := range []*regexp.Regexp{unknownField, fieldError} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// listed turns upstream's plugin lists, by extension point, into names and weights.
func listed(p *internal.Plugins) map[string][]Plugin {
	out := map[string][]Plugin{} // extension point -> plugins in order
	for point, set := range map[string]internal.PluginSet{
		"preEnqueue": p.PreEnqueue, "queueSort": p.QueueSort, "preFilter": p.PreFilter, "filter": p.Filter, "postFilter": p.PostFilter,
		"preScore": p.PreScore, "score": p.Score, "reserve": p.Reserve, "permit": p.Permit, "preBind": p.PreBind, "bind": p.Bind,
		"postBind": p.PostBind, "placementGenerate": p.PlacementGenerate, "placementScore": p.PlacementScore,
		"podGroupPostFilter": p.PodGroupPostFilter,
	} {
		for _, e := range set.Enabled {
			entry := Plugin{Name: e.Name}
			if point == "score" {
				entry.Weight = int64(e.Weight)
			}
			out[point] = append(out[point], entry)
		}
	}
	return out
}

// arguments are those of the plugins that upstream made.
func arguments(p internal.KubeSchedulerProfile) (map[string]any, error) {
	out := map[string]any{} // plugin -> arguments in JSON's terms
	for _, pc := range p.PluginConfig {
		if _, unknown := pc.Args.(*runtime.Unknown); unknown || pc.Args == nil {
			continue
		}
		versioned, err := scheme.Scheme.ConvertToVersion(pc.Args, configv1.SchemeGroupVersion)
		if err != nil {
			return nil, err
		}
		if out[pc.Name], err = plain(versioned); err != nil {
			return nil, err
		}
	}
	return out, nil
}
