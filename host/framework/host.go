// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Env is what a process gives to plugins. All fields may be zero: then plugins have no cluster, as for checks of a
// configuration and in replays.
type Env struct {
	// Context ends the calls of plugins outside of the loop, and is that of factories.
	Context   context.Context
	Client    kubernetes.Interface
	Config    *restclient.Config
	Informers informers.SharedInformerFactory
	Recorder  events.EventRecorderLogger
	// Post gives an event to the engine. It is safe for concurrent use.
	Post func(message.Event)
	// Report receives each misbehaviour of a plugin. It is safe for concurrent use.
	Report func(Problem)
	Hooks  Hooks
	// Nominate, if not nil, writes that a pod is about to be bound to a node, before PreBind of plugins is called. It
	// is safe for concurrent use.
	Nominate func(record.PodRef, string)
	// Await, if not nil, returns once the informers of plugins show a pod in this version, or have shown it. It is
	// called before plugins decide about the pod.
	Await func(*v1.Pod)
	// Limits are those of calls. PluginTimeout and SlowCall have no effect unless Watch runs.
	Limits config.Hosted
}

func (e *Env) context() context.Context {
	if e.Context == nil {
		return context.Background()
	}
	return e.Context
}

// Problem is a misbehaviour of a plugin.
type Problem struct {
	Plugin string
	Point  config.Point
	Err    error
	Kind   ProblemKind
}

// ProblemKind is a kind of misbehaviour.
type ProblemKind string

// The kinds.
const (
	Panicked  ProblemKind = "panic"
	BadAnswer ProblemKind = "bad_answer" // an unknown status, or a score out of range
	Slow      ProblemKind = "slow"       // a call has not returned for some time
	TimedOut  ProblemKind = "timeout"    // a call took longer than the timeout
	Modified  ProblemKind = "modified"   // an object that was lent is not what it was; see config.Hosted.Check
	Misused   ProblemKind = "misuse"     // an event that is not watched, a method of Handle that is absent
)

// Host runs the plugins of one configuration.
type Host struct {
	env       Env
	infos     nodeInfos
	nominated nominator
	watch     watch
	suspects  suspects
	devices   *deviceManager
	pending   func() iter.Seq[*cluster.Pod] // see ReadPending; may be nil
	profiles  []*Profile
	others    map[plugin.Resource]plugin.Action // resource besides those of the scheduler -> changes to watch

	mu      sync.Mutex // guards flights
	flights map[cluster.UID]*flight
}

// NewHost returns a Host without plugins.
func NewHost(env Env) *Host {
	h := &Host{env: env, flights: map[cluster.UID]*flight{}, // pod -> what is reserved for it
		others: map[plugin.Resource]plugin.Action{}}
	h.infos.check = env.Limits.Check
	h.devices = &deviceManager{h: h, pending: map[types.UID]*pendingClaim{}, // claim -> its allocation
		assumed: map[cluster.ObjectKey]*resourceapi.ResourceClaim{}} // claim -> as a plugin has written it
	h.watch.limits, h.watch.report, h.watch.context = env.Limits, h.report, h.env.context
	return h
}

// Profile adds a profile.
func (h *Host) Profile(name string) *Profile {
	p := &Profile{host: h, name: name, kept: map[cluster.UID]*decision{}}
	h.profiles = append(h.profiles, p)
	return p
}

// report reports a misbehaviour.
func (h *Host) report(p Problem) {
	if h.env.Report != nil {
		h.env.Report(p)
	}
}

// Profile is the plugins of one scheduling profile.
type Profile struct {
	host    *Host
	name    string
	config  config.Profile // see Configure
	plugins []*hosted      // in the order in which they were added
	// The plugins at a point, in the order of the profile.
	preScores, scores, reserves, permits, preBinds, binds, postBinds []*hosted
	generates, placementScores                                       []*hosted
	nativeBind                                                       int  // how many of binds come before DefaultBinder
	native                                                           bool // DefaultBinder binds
	current                                                          *decision
	runs                                                             runs
	extenders                                                        place.Foreign // nil if there are none
	// kept are the decisions about members of gangs that are not reserved yet: pod -> decision
	kept map[cluster.UID]*decision
	// candidates is the search of a pod group among placements, nil while there is none.
	candidates *candidateSearch
}

// hosted is one plugin of a profile. The fields of extension points at which the profile does not enable it are nil.
type hosted struct {
	name           string
	profile        *Profile
	plugin         fwk.Plugin
	wakes          []plugin.Wake
	gate           fwk.PreEnqueuePlugin
	queueSort      fwk.QueueSortPlugin
	preFilter      fwk.PreFilterPlugin
	filter         fwk.FilterPlugin
	postFilter     fwk.PostFilterPlugin
	preScore       fwk.PreScorePlugin
	score          fwk.ScorePlugin
	reserve        fwk.ReservePlugin
	permit         fwk.PermitPlugin
	preBind        fwk.PreBindPlugin
	bind           fwk.BindPlugin
	postBind       fwk.PostBindPlugin
	generate       fwk.PlacementGeneratePlugin
	placementScore fwk.PlacementScorePlugin
	signs          fwk.SignPlugin       // nil if the plugin does not sign pods
	memory         map[string]*verdicts // signature -> verdicts of Filter
}

// Add makes a plugin and returns it in the form of kumiki's plugins. Enable must be called for each point at which the
// profile enables it.
func (p *Profile) Add(r Registration, args runtime.Object) (plugin.Plugin, error) {
	if slices.ContainsFunc(p.plugins, func(h *hosted) bool { return h.name == r.Name }) {
		return nil, fmt.Errorf("plugin %q is in the profile twice", r.Name)
	}
	pl, err := p.make(r, args)
	if err != nil {
		return nil, err
	}
	h := &hosted{name: r.Name, profile: p, plugin: pl}
	h.signs, _ = pl.(fwk.SignPlugin)
	if failed := guard(func() { h.wakes, err = h.register() }); failed != nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("plugin %q: EventsToRegister: %w", r.Name, err)
	}
	p.plugins = append(p.plugins, h)
	return adapter{h}, nil
}

// Enable enables a plugin at an extension point, after the plugins that are enabled there already.
func (p *Profile) Enable(name string, at config.Point) error {
	i := slices.IndexFunc(p.plugins, func(h *hosted) bool { return h.name == name })
	if i < 0 {
		return fmt.Errorf("plugin %q is not in the profile", name)
	}
	h := p.plugins[i]
	if !slices.Contains(pointsOf(h.plugin), at) {
		return fmt.Errorf("plugin %q: what its factory made, %T, does not extend this point", name, h.plugin)
	}
	if !hosts(at) {
		return fmt.Errorf("plugin %q: this version does not run plugins of kube-scheduler's framework at this "+
			"point; disable it there: plugins: {%s: {disabled: [{name: %s}]}}", name, at, name)
	}
	switch at {
	case config.PreEnqueue:
		h.gate = h.plugin.(fwk.PreEnqueuePlugin)
	case config.QueueSort:
		h.queueSort = h.plugin.(fwk.QueueSortPlugin)
	case config.PreFilter:
		h.preFilter = h.plugin.(fwk.PreFilterPlugin)
	case config.Filter:
		h.filter = h.plugin.(fwk.FilterPlugin)
	case config.PostFilter:
		h.postFilter = h.plugin.(fwk.PostFilterPlugin)
	case config.PreScore:
		h.preScore, p.preScores = h.plugin.(fwk.PreScorePlugin), append(p.preScores, h)
	case config.Score:
		h.score, p.scores = h.plugin.(fwk.ScorePlugin), append(p.scores, h)
	case config.Reserve:
		h.reserve, p.reserves = h.plugin.(fwk.ReservePlugin), append(p.reserves, h)
	case config.Permit:
		h.permit, p.permits = h.plugin.(fwk.PermitPlugin), append(p.permits, h)
	case config.PreBind:
		h.preBind, p.preBinds = h.plugin.(fwk.PreBindPlugin), append(p.preBinds, h)
	case config.Bind:
		h.bind, p.binds = h.plugin.(fwk.BindPlugin), append(p.binds, h)
	case config.PostBind:
		h.postBind, p.postBinds = h.plugin.(fwk.PostBindPlugin), append(p.postBinds, h)
	case config.PlacementGenerate:
		h.generate, p.generates = h.plugin.(fwk.PlacementGeneratePlugin), append(p.generates, h)
	case config.PlacementScore:
		h.placementScore = h.plugin.(fwk.PlacementScorePlugin)
		p.placementScores = append(p.placementScores, h)
	}
	return nil
}

// Empty reports whether the profile has no plugin.
func (p *Profile) Empty() bool { return len(p.plugins) == 0 }

// BindNatively says that DefaultBinder binds after the Bind plugins that are enabled already.
func (p *Profile) BindNatively() { p.nativeBind, p.native = len(p.binds), true }

// decision is the state that the plugins of a profile share in one decision, and as long as its pod is on its way.
type decision struct {
	record *cluster.Pod
	first  CycleState // what state points to
	names  [4]string  // space for its skips
	state  *CycleState
	// dry is a copy of state for a dry run, while pods are supposed to be there or gone; else nil.
	dry      *CycleState
	supposed []change // in the dry run, without those that were undone
	dryErr   error    // of the dry run, by dryBy
	dryBy    *hosted

	preScored bool
	preErr    error  // of PreScore
	preBy     string // the plugin that failed
	scored    *scores
}

// cycleState returns the state that plugins read and write now.
func (d *decision) cycleState() *CycleState {
	if d.dry != nil {
		return d.dry
	}
	return d.state
}

// pod returns the object of the pod. The error means that the record was made without it.
func (d *decision) pod() (*v1.Pod, error) { return objectOfPod(d.record) }

func objectOfPod(p *cluster.Pod) (*v1.Pod, error) {
	if p.Full == nil {
		return nil, fmt.Errorf("the object of pod %s is not known; plugins of kube-scheduler's framework need it",
			p.Key())
	}
	return p.Full, nil
}

// Begin starts a decision about p, as plugin.Shared.
func (p *Profile) Begin(_ cluster.Snapshot, pod *cluster.Pod) {
	d := &decision{record: pod}
	d.state = &d.first
	d.first.filters, d.first.scores = d.names[0:0:2], d.names[2:2:4]
	if p.host.env.Limits.Check {
		d.first.writers = &sync.Map{}
	}
	p.host.began(d)
	if p.candidates != nil {
		p.candidates.began(d)
	}
	p.current = d
	if pod.Gang != nil {
		if len(p.kept) >= mostKept {
			clear(p.kept)
		}
		p.kept[pod.UID] = p.current
	}
}

// mostKept bounds the decisions about members of gangs that are kept until the gang has its places.
const mostKept = 1 << 14

// at returns the decision about a pod in progress.
func (p *Profile) at(s cluster.Snapshot, pod *cluster.Pod) *decision {
	if p.current == nil || p.current.record != pod {
		p.Begin(s, pod)
	}
	return p.current
}

// guard calls a plugin and returns an error for a panic.
func guard(call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	call()
	return nil
}

// call calls a plugin at an extension point, on the goroutine of the scheduling loop. A panic, an unknown status and a
// call that takes too long become a status of code Error. If the plugin modifies what is lent to it, that is reported.
func (h *hosted) call(at config.Point, lent loan, f func(context.Context) *fwk.Status) (status *fwk.Status) {
	w := &h.profile.host.watch
	compare := h.lend(at, lent)
	ctx, outer := w.begin(h, at)
	defer func() {
		r := recover()
		late := w.end(outer)
		if compare != nil {
			compare()
		}
		switch {
		case r != nil:
			status = h.broken(at, Panicked, fmt.Errorf("panic: %v", r))
		case late:
			status = h.broken(at, TimedOut, w.tooLong())
		}
	}()
	return h.known(at, f(ctx))
}

// callOutside is call on another goroutine. It lends a pod.
func (h *hosted) callOutside(ctx context.Context, at config.Point, pod *v1.Pod,
	f func(context.Context) *fwk.Status) (status *fwk.Status) {
	compare := h.lend(at, lends(pod))
	defer func() {
		if compare != nil {
			compare()
		}
		if r := recover(); r != nil {
			status = h.broken(at, Panicked, fmt.Errorf("panic: %v", r))
		}
	}()
	return h.known(at, f(ctx))
}

// guard calls a function of a plugin that returns no status, on the goroutine of the scheduling loop. It returns an
// error for a panic.
func (h *hosted) guard(at config.Point, lent loan, call func()) error {
	w := &h.profile.host.watch
	compare := h.lend(at, lent)
	_, outer := w.begin(h, at)
	err := guard(call)
	w.end(outer)
	if compare != nil {
		compare()
	}
	return err
}

// known returns a status, or an error for one of an unknown code.
func (h *hosted) known(at config.Point, status *fwk.Status) *fwk.Status {
	if status.Code() < fwk.Success || status.Code() > fwk.Pending {
		return h.broken(at, BadAnswer, fmt.Errorf("unknown status code %d", int(status.Code())))
	}
	return status
}

// broken reports a misbehaviour and returns it as a status.
func (h *hosted) broken(at config.Point, kind ProblemKind, err error) *fwk.Status {
	err = fmt.Errorf("plugin %q at %s: %w", h.name, at, err)
	h.profile.host.report(Problem{h.name, at, err, kind})
	return fwk.AsStatus(err)
}

// failure returns the error of a status that is no answer at a point.
func failure(status *fwk.Status) error {
	if err := status.AsError(); err != nil {
		return err
	}
	return fmt.Errorf("unexpected status %s", status.Code())
}
