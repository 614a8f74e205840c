// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/pace"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Profile is a scheduling profile with its plugins made and ordered.
type Profile struct {
	// Name is the schedulerName of the pods it takes.
	Name    string
	Gates   []plugin.Gate
	Filters []plugin.Filter
	Scorers []place.Scorer
	// Wakers are the plugins whose events wake the pods they rejected.
	Wakers []plugin.Waker
	// Reservers take what a pod needs besides capacity, in this order.
	Reservers []plugin.Reserver
	// Placements proposes sets of nodes for gangs; nil for none.
	Placements plugin.Placements
	// Remediers are asked, in this order, when a pod fits nowhere; the first that can do something is the last asked.
	Remediers []plugin.Remedier
	// Preemption is asked after the Remediers; nil means no evictions.
	Preemption *preempt.Config
	// PostFilters are asked besides these, in this order.
	PostFilters []PostFilter
	// Search says which of the nodes that fit are ranked.
	Search place.Search
	// Foreign is code that is not native and takes part in this profile's decisions; nil for none.
	Foreign Foreign
}

// Config makes an Engine. All switches are resolved here.
type Config struct {
	// Seed keys the draws among tied nodes.
	Seed     uint64
	Profiles []Profile
	// Less orders the queue of all profiles.
	Less plugin.Less
	// The first and the longest backoff; a longest of 0 turns backoff off.
	InitialBackoff, MaxBackoff record.Time
	// UnschedulableTimeout is how long a rejected pod waits for an event before it is tried anyway.
	UnschedulableTimeout record.Time
	// ClassBytes bounds the memory of classes per profile; 0 means place.DefaultClassBytes.
	ClassBytes int
	// Hold says when capacity is held for a gang that is blocked; nil means the default.
	Hold *Hold
	// ScaleUp limits how long a blocked gang requests nodes from an autoscaler.
	ScaleUp ScaleUp
	// SessionPeriod is the time from the end of a session to the start of the next; 0 means that there are no
	// sessions, and units are tried as soon as they are ready.
	SessionPeriod record.Time
	// Meter may be nil.
	Meter Meter
	// Nominator follows the nominations of pods; it may be nil.
	Nominator plugin.Nominator
	// Instances makes the engine one of several; nil for the only one.
	Instances *Instances
	// Answers notes the answers of plugins of kube-scheduler's framework; it may be nil.
	Answers Answers
}

// Engine is the scheduling loop as a state machine. It belongs to one goroutine.
type Engine struct {
	cfg       Config              // derived: given to Resume
	store     *cluster.Store      // kept
	queue     *queue.Queue        // kept
	pace      pace.Pace           // kept; see State.Session
	role      role                // derived: of the configuration; one of several instances is not resumed
	profiles  map[string]*profile // derived: made of the configuration. SchedulerName -> profile
	search    searches            // kept
	evictions *evict.Manager      // kept
	// deadlines are all times at which something is to happen, but for those of the queue and of sessions.
	deadlines deadline.Heap // derived: set by those whose times they are

	// pending holds the newest version of each pod that waits, is in flight or is assumed; a pod leaves when it is seen
	// bound or gone. Invariant: each pod of a unit in the queue and each assumed pod is in it; of the confirmed pods,
	// at most those whose bind has no outcome.
	pending map[cluster.UID]*cluster.Pod // kept; pod -> its newest version
	binds   binds                        // kept
	gangs   gangs                        // kept
	blocked *blocked.Gangs               // kept
	now     record.Time                  // kept
	count   counters                     // kept
	out     output                       // kept
}

// counters are how far the engine is.
type counters struct {
	decisions uint64 // kept
	events    uint64 // derived: only negative results compare it
	synced    bool   // kept; the initial lists are complete
}

// output is what the engine has said.
type output struct {
	effects        []Effect    // derived: of one step. Of the event in hand
	wake           record.Time // kept; the last Wake asked for, 0 none
	foreignAnswers []Answer    // kept; a panic may have ended the cycle; what foreign code answered in this cycle
}

// searches is what searches for a node leave to the next ones.
type searches struct {
	// window is the order in which searches that do not scan all nodes go about them.
	window *place.Window  // kept
	last   negativeResult // derived: a search has the same effects
}

// gangs is what is remembered of gangs.
type gangs struct {
	e *Engine // derived: the owner
	// of holds the gangs with a place, and those whose object got a status. Invariant: a gang of which no pod waits or
	// has a place is in it only if its object got a status.
	of map[cluster.GangKey]*gangState // kept; gang -> what is remembered of it
	// edited holds those pending pods that name another gang than the one in which they are kept; see keepGang.
	// Invariant: each is in pending, in a gang that it does not name.
	edited map[cluster.UID]*cluster.Pod // kept; pod -> its newest version, as it says
}

// profile is a Profile at work.
type profile struct {
	Profile
	placer *place.Placer
	evicts evict.Profile // what core/evict needs of it
}

// stage is how far a decided pod has come.
type stage uint8

const (
	preparing stage = iota // its writes are on the way; WritesDone answers
	waiting                // its writes are done; something it needs is not ready
	binding                // its bind is on the way; BindDone answers
	proposed               // another instance decides; its answer ends the flight
)

// held is what one plugin holds for a pod.
type held struct {
	by        string             // kept
	hold      plugin.Reservation // kept; see plugin.Factual
	announced bool               // kept; that the pod must wait
}

// flight is a decided pod on its way to its node.
type flight struct {
	unit     *queue.Unit  // kept; Invariant: its only member is the pod.
	pod      *cluster.Pod // kept; as assumed
	node     string       // kept
	decision uint64       // kept
	stage    stage        // kept
	holds    []held       // kept
	wrote    bool         // kept; Prepare was asked for
	// again is when to ask again whether it can be bound. Invariant: it is not set unless the stage is waiting.
	again   deadline.Entry // kept
	gang    *GangBind      // kept; nil for a pod by itself
	retries int            // kept; of the bind of a gang's member
	// before are the plugins that the pod waits for.
	before   []string // kept
	expected bool     // kept; its node was shown as the nominated one
	// cancelled is why the pod is not to be bound any more, though the answer to its writes is still to come.
	cancelled string // kept
	// recalled is why the pod does not fit its node any more, though the answer to its writes or its bind is still to
	// come. A bind that is on its way decides; otherwise the pod is tried again.
	recalled  string // kept
	preempted bool   // kept; recalled for a preemption
}

// binds are the decided pods whose bind has no outcome yet.
type binds struct {
	e *Engine // derived: the owner
	// of holds all of them; the same UID may be in the store as assumed, as confirmed (the watch was faster) or not
	// at all (the pod was deleted meanwhile).
	of map[cluster.UID]*flight // kept; pod -> its flight
	// waiting holds those that wait for something before they are bound. Invariant: these are the flights of of in the
	// stage waiting.
	waiting   map[cluster.UID]*flight // derived: those in the stage waiting. Pod -> its flight
	deadlines *deadline.Heap          // derived: those of the engine
}

// What is configured of blocked gangs; package blocked describes it.
type (
	Hold    = blocked.Hold
	ScaleUp = blocked.ScaleUp
)

// gangState is what the engine remembers of a gang with a place. It is made by the gang's first decision and goes
// with its last pod.
type gangState struct {
	// quorum is how many pods had to have a place by the last decision.
	quorum int // kept
	// partialSince is when the first of its pods was seen bound while fewer than the quorum were; 0 when none or enough
	// are. It is set only while complete is not, and stays if a decision finds that an earlier process completed the gang.
	partialSince record.Time // kept
	// complete tells that the quorum was bound once. A gang that loses pods after that is kept (answer A7).
	complete bool // kept
	// told is what its status was last asked to show.
	told GangStatus // kept
}

// negativeResult is the kind of the pod that was searched for last without success, and the plugins that rejected
// it. It answers for others of the kind behind it, which need not be searched for, until anything else happens, be
// it only that time goes on.
type negativeResult struct {
	step      uint64 // of the event that it was found or used with; it is valid for the next event only
	namespace string
	spec      *cluster.PodSpec // nil for none
	claims    uint64
	plugins   []string
	message   string // of the search for victims
	off       bool   // of tests: no result is kept
}

// The phases of a tick that handle deadlines; those of evictions come first.
const (
	phaseBinds    = evict.Phases + iota // decided pods that wait for something
	phasePromises                       // capacity that is promised to units of planners
	phaseBlocked                        // the first of core/blocked
)
