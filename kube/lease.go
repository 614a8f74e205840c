// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	compbasecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/serve"
)

// The annotations on the lease by which the command line finds the running scheduler.
const (
	// EndpointAnnotation is host:port of the leader's https endpoint.
	EndpointAnnotation = "kumiki.dev/endpoint"
	// CAAnnotation is the PEM of what the endpoint's certificate is checked against, in base64.
	CAAnnotation = "kumiki.dev/ca"
	// HolderAnnotation is the identity of the kumiki that wrote the others: another scheduler that takes the lease
	// leaves them where they are.
	HolderAnnotation = "kumiki.dev/holder"
	// SchedulersAnnotation lists the scheduler names of the leader's profiles, separated by commas.
	SchedulersAnnotation = "kumiki.dev/schedulers"
	// PodAnnotation is namespace/name of the leader's pod; without it, the host name in the holder's identity is all
	// that is known.
	PodAnnotation = "kumiki.dev/pod"
)

// EndpointOf reads the endpoint from a lease.
func EndpointOf(lease *coordinationv1.Lease) (serve.Endpoint, error) {
	e := serve.Endpoint{Address: lease.Annotations[EndpointAnnotation]}
	if e.Address == "" {
		return e, fmt.Errorf("lease %s/%s: no annotation %s: no kumiki leads",
			lease.Namespace, lease.Name, EndpointAnnotation)
	}
	ca, err := base64.StdEncoding.DecodeString(lease.Annotations[CAAnnotation])
	if err != nil {
		return e, fmt.Errorf("lease %s/%s: annotation %s: %w", lease.Namespace, lease.Name, CAAnnotation, err)
	}
	e.CA = ca
	return e, nil
}

// leaseLock is a lease that carries the endpoint of its holder.
type leaseLock struct {
	client          coordinationclient.LeasesGetter
	namespace, name string
	identity        string
	endpoint        serve.Endpoint
	schedulers      []string
	pod             string
	// patience bounds one request, so that one that hangs does not use up the time for renewing.
	patience time.Duration
	lease    *coordinationv1.Lease // as last read or written
	// other is the holder, not this process, that was logged last.
	other string
	// firstRead is closed when the lease was read for the first time, or could not be.
	firstRead chan struct{}
	looks     int // reads that were begun
	// won is when the lease was first ours.
	won     atomic.Pointer[taken]
	pausing pausing
	// renewed is when the last write that gave us the lease was begun; nil before the first, and after we gave it back.
	renewed atomic.Pointer[time.Time]
}

// taken is how the lease became ours.
type taken struct {
	at time.Time
	// alone: no other process can have held the lease since our first look at it.
	alone bool
}

var _ resourcelock.Interface = (*leaseLock)(nil)

// Get reads the lease.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.looks++; l.looks == 1 {
		defer close(l.firstRead)
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	lease, err := l.client.Leases(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err // the elector asks for the kind of the error
	}
	l.lease = lease
	l.pausing.read(lease)
	rec := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	if rec.HolderIdentity != l.identity {
		l.renewed.Store(nil) // whatever it took to get there: it is not ours
		l.noteOther(lease, rec.HolderIdentity)
	}
	raw, err := json.Marshal(*rec)
	if err != nil {
		return nil, nil, fmt.Errorf("lease %s: %w", l.Describe(), err)
	}
	return rec, raw, nil
}

// noteOther logs, once for each holder, that another process holds the lease. A kumiki with other profiles may be of
// another deployment, whose lease should have another name: one of the two schedules nothing, and is as ready as a
// standby is. It may also be the version before, in a rollout that changes profiles, so this is no reason not to be
// ready.
func (l *leaseLock) noteOther(lease *coordinationv1.Lease, holder string) {
	if holder == l.other {
		return
	}
	l.other = holder
	if holder == "" {
		return
	}
	names, own := lease.Annotations[SchedulersAnnotation], strings.Join(l.schedulers, ",")
	if lease.Annotations[HolderAnnotation] != holder || names == "" || own == "" || names == own {
		klog.Background().Info("Another process holds the lease; standing by", "lease", l.Describe(), "holder", holder)
		return
	}
	klog.Background().Error(nil, "A kumiki with other profiles holds the lease, so the pods of this one's profiles "+
		"wait; unless this is a rollout, two deployments share the lease, and one of them needs another "+
		"leaderElection.resourceName", "lease", l.Describe(), "holder", holder, "schedulersOfHolder", names,
		"schedulers", own)
}

// Create makes the lease.
func (l *leaseLock) Create(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.name, Namespace: l.namespace},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&rec),
	}
	held, began := l.annotate(lease), time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	made, err := l.client.Leases(l.namespace).Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.lease = made
	l.pausing.read(made)
	l.wrote(held, began)
	return nil
}

// Update writes the lease on top of the version last seen.
func (l *leaseLock) Update(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return errors.New("lease " + l.Describe() + ": updated before it was read")
	}
	lease := l.lease.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&rec)
	held, began := l.annotate(lease), time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	written, err := l.client.Leases(l.namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.lease = written
	l.pausing.read(written)
	l.wrote(held, began)
	return nil
}

func (l *leaseLock) wrote(held bool, began time.Time) {
	if held {
		l.renewed.Store(&began)
		if l.won.Load() == nil {
			// The write was on top of what the look before it found. One that found the lease held is not written on.
			l.won.Store(&taken{time.Now(), l.looks == 1})
		}
	} else {
		l.renewed.Store(nil)
	}
}

// annotate reports whether the lease to be written names this process as its holder. If so, annotate adds the endpoint
// and the state of a pause; if the lease is released, annotate removes both.
func (l *leaseLock) annotate(lease *coordinationv1.Lease) (held bool) {
	held = lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == l.identity
	l.pausing.answer(lease, held)
	if !held || l.endpoint.Address == "" {
		delete(lease.Annotations, EndpointAnnotation)
		delete(lease.Annotations, CAAnnotation)
		delete(lease.Annotations, HolderAnnotation)
		delete(lease.Annotations, SchedulersAnnotation)
		delete(lease.Annotations, PodAnnotation)
		return held
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[HolderAnnotation] = l.identity
	lease.Annotations[EndpointAnnotation] = l.endpoint.Address
	lease.Annotations[CAAnnotation] = base64.StdEncoding.EncodeToString(l.endpoint.CA)
	lease.Annotations[SchedulersAnnotation] = strings.Join(l.schedulers, ",")
	if delete(lease.Annotations, PodAnnotation); l.pod != "" {
		lease.Annotations[PodAnnotation] = l.pod
	}
	return held
}

// RecordEvent logs a change of leadership.
func (l *leaseLock) RecordEvent(what string) {
	klog.Background().Info("Leader election", "lease", l.Describe(), "identity", l.identity, "what", what)
}

// Identity names this candidate.
func (l *leaseLock) Identity() string { return l.identity }

// Describe names the lease.
func (l *leaseLock) Describe() string { return l.namespace + "/" + l.name }

// LeaseConfig is how the leader is elected.
type LeaseConfig struct {
	Client          coordinationclient.LeasesGetter
	Namespace, Name string
	// Hostname begins the identity; a unique part follows.
	Hostname string
	// The periods of client-go's leader election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	Endpoint                                  serve.Endpoint
	// Schedulers are the scheduler names of the profiles, and Pod is namespace/name of this process's pod, if known.
	// The lease shows both with the Endpoint.
	Schedulers []string
	Pod        string
	// Candidates, when set, is how this process tells the API server that it stands for the lease, which then chooses:
	// the oldest Version leads (KEP-4355).
	Candidates kubernetes.Interface
	// Version is the version that stands; nil is that of the libraries. It counts only with Candidates.
	Version compbasecompatibility.EffectiveVersion
}

// Election is one candidate for the lease.
type Election struct {
	elector *leaderelection.LeaderElector
	lock    *leaseLock
	lasts   time.Duration // how long the lease lasts without a renewal
	watch   *leaderelection.HealthzAdaptor
	won     chan struct{}
	// candidate is nil unless the API server chooses; synced then reports whether it follows its own object.
	candidate *leaderelection.LeaseCandidate
	synced    leaderelection.CacheSyncWaiter
}

// NewElection returns a candidate that does not run yet.
func NewElection(c LeaseConfig) (*Election, error) {
	e := &Election{
		won:   make(chan struct{}),
		watch: leaderelection.NewLeaderHealthzAdaptor(20 * time.Second),
	}
	lock := &leaseLock{
		client: c.Client, namespace: c.Namespace, name: c.Name, endpoint: c.Endpoint, schedulers: c.Schedulers,
		pod:      c.Pod,
		identity: c.Hostname + "_" + string(uuid.NewUUID()),
		patience: max(time.Second, c.RenewDeadline/2), firstRead: make(chan struct{}),
	}
	if c.Candidates != nil {
		if err := e.createCandidate(c, lock.identity); err != nil {
			return nil, err
		}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Coordinated: e.candidate != nil,
		Lock:        lock, LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
		ReleaseOnCancel: true, Name: "kube-scheduler", WatchDog: e.watch,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(e.won) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader election with lease %s/%s: %w", c.Namespace, c.Name, err)
	}
	e.elector, e.lock, e.lasts = elector, lock, c.LeaseDuration
	e.watch.SetLeaderElection(elector)
	return e, nil
}

// createCandidate writes the candidate among which the API server chooses.
func (e *Election) createCandidate(c LeaseConfig, identity string) (err error) {
	v := c.Version
	if v == nil {
		v = compatibility.DefaultBuildEffectiveVersion()
	}
	binary, emulated := v.BinaryVersion(), v.EmulationVersion()
	e.candidate, e.synced, err = leaderelection.NewCandidate(c.Candidates, c.Namespace, identity, c.Name,
		fmt.Sprintf("%d.%d.%d", binary.Major(), binary.Minor(), binary.Patch()),
		fmt.Sprintf("%d.%d.0", emulated.Major(), emulated.Minor()),
		coordinationv1.OldestEmulationVersion)
	if err != nil {
		return fmt.Errorf("candidate for lease %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}

// Run stands for the lease, holds it, and returns when it is lost, or given back because ctx ended.
func (e *Election) Run(ctx context.Context) {
	if e.candidate != nil {
		standing, withdraw := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { e.candidate.Run(standing) })
		defer ended.Wait()
		defer withdraw()
	}
	e.elector.Run(ctx)
}

// Won is closed when the lease is held.
func (e *Election) Won() <-chan struct{} { return e.won }

// Holds reports whether no other process can have the lease at this moment: our last renewal was begun less than a
// lease ago. A process that was stopped and goes on learns from it, before the elector does, that its time is over.
func (e *Election) Holds() bool { return e.Left() > 0 }

// Left is how long that holds if no renewal comes; 0 or less when it does not.
func (e *Election) Left() time.Duration {
	renewed := e.lock.renewed.Load()
	if renewed == nil {
		return 0
	}
	return e.lasts - time.Since(*renewed)
}

// Renewed is when the last write that gave us the lease was begun; zero if another process holds it, or none does.
func (e *Election) Renewed() time.Time {
	if renewed := e.lock.renewed.Load(); renewed != nil {
		return *renewed
	}
	return time.Time{}
}

// Paused is the pause that the lease asks for, as last read; nil when it asks for none.
func (e *Election) Paused() *Pause { return e.lock.pausing.asked.Load() }

// FirstRead is closed when the lease was read for the first time, or could not be.
func (e *Election) FirstRead() <-chan struct{} { return e.lock.firstRead }

// Contested reports whether another process may have held the lease after this process first read it: the lists since
// then may lack its last binds. It must be called after the lease was won.
func (e *Election) Contested() bool {
	t := e.lock.won.Load()
	return t == nil || !t.alone
}

// wonAt is when the lease was first held; it must have been.
func (e *Election) wonAt() time.Time { return e.lock.won.Load().at }

// Health is the check of upstream's name leaderElection: it fails when the lease should have been renewed long ago.
func (e *Election) Health() *leaderelection.HealthzAdaptor { return e.watch }
