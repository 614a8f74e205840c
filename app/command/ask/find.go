// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
)

// Where is how the scheduler is found.
type Where struct {
	// Namespace and Lease name the lease of the scheduler. Without Lease, the known leases of Namespace are read, and
	// the pods listed if no kumiki holds one.
	Namespace, Lease string
	// Pod, if set, is namespace/name of the scheduler's pod, and no lease is read.
	Pod string
	// Endpoint, if set, is dialled instead of the address in the lease, for a forwarded port. The certificate is
	// still verified for the address in the lease.
	Endpoint string
	// Any accepts schedulers other than kumiki, which write no address into their lease. They are found by their pods.
	Any bool
	// CA, in PEM, verifies the certificate at Endpoint, without a lease. Insecure accepts any certificate there, which
	// gives the user's token to the process that serves at Endpoint.
	CA       []byte
	Insecure bool
}

// Default returns where a scheduler is by default.
func Default() Where { return Where{Namespace: metav1.NamespaceSystem} }

// DefaultLease is the lease that kube-scheduler and kumiki hold unless they are configured otherwise.
const DefaultLease = "kube-scheduler"

// knownLeases are the names of the leases that are read if the user names none: those of the manifests, and of
// deploy/viewer.yaml.
var knownLeases = []string{DefaultLease, "kumiki"}

// Selectors of the pods of a scheduler without leader election: the manifests and the chart of kumiki, and kubeadm.
const (
	ourPods     = "app.kubernetes.io/name=kumiki"
	kubeadmPods = "component=kube-scheduler"
)

// Instance is one running scheduler.
type Instance struct {
	// Holder is its identity in the lease, or its pod.
	Holder string
	// Names are the scheduler names of its profiles; nil if they are unknown.
	Names []string

	endpoint serve.Endpoint // as in the lease; without an address if there is none
	through  string         // Where.Endpoint
	insecure bool           // Where.Insecure
	pods     []podPort      // what the port can be forwarded from, the likeliest first
	api      kubernetes.Interface
	cfg      *rest.Config
}

// podPort is a port of a pod.
type podPort struct {
	namespace, name string
	port            int
}

// Find returns the running schedulers, those that have a profile of the given name first. cfg is how the user reaches
// the API server. It is an error if there is none.
func Find(ctx context.Context, cfg *rest.Config, w Where, schedulerName string) ([]*Instance, error) {
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	s := search{api: api, cfg: cfg, w: w}
	switch {
	case w.Endpoint != "" && (len(w.CA) > 0 || w.Insecure):
		s.found = append(s.found, &Instance{Holder: w.Endpoint, api: api, cfg: cfg, through: w.Endpoint,
			insecure: w.Insecure, endpoint: serve.Endpoint{Address: w.Endpoint, CA: w.CA}})
	case w.Pod != "":
		err = s.pod(ctx)
	case w.Lease != "":
		err = s.oneLease(ctx)
	default:
		err = s.all(ctx)
	}
	if err != nil {
		return nil, explain(cfg, err)
	}
	slices.SortStableFunc(s.found, func(a, b *Instance) int {
		return cmp.Compare(a.rank(schedulerName), b.rank(schedulerName))
	})
	return s.found, nil
}

// String names the scheduler for users.
func (i *Instance) String() string {
	if len(i.Names) == 0 {
		return i.Holder
	}
	return i.Holder + " (" + strings.Join(i.Names, ", ") + ")"
}

// rank is lower for an instance that is likelier to know a pod of a scheduler name.
func (i *Instance) rank(schedulerName string) int {
	switch {
	case slices.Contains(i.Names, schedulerName):
		return 0
	case i.Names == nil || schedulerName == "":
		return 1
	}
	return 2
}

// search collects instances.
type search struct {
	api   kubernetes.Interface
	cfg   *rest.Config
	w     Where
	found []*Instance
}

// oneLease finds the holder of the lease that the user named.
func (s *search) oneLease(ctx context.Context) error {
	lease, err := s.api.CoordinationV1().Leases(s.w.Namespace).Get(ctx, s.w.Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("no scheduler runs: there is no lease %s/%s; start one with `kumiki scheduler` or "+
			"`kumiki up`, or if it runs with --leader-elect=false, name its pod with --scheduler-pod",
			s.w.Namespace, s.w.Lease)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not read the lease that names the scheduler: grant get on "+
			"leases.coordination.k8s.io %q in namespace %q (%w)", s.w.Lease, s.w.Namespace, err)
	case err != nil:
		return fmt.Errorf("reading lease %s/%s: %w", s.w.Namespace, s.w.Lease, err)
	}
	return s.holder(ctx, lease)
}

// all finds the holders of the known leases, or else the pods of schedulers without leader election.
func (s *search) all(ctx context.Context) error {
	leases, err := s.leases(ctx)
	var why error // of the lease that says the most
	foreign := false
	for i := range leases {
		err := s.holder(ctx, &leases[i])
		foreign = foreign || leases[i].Name == DefaultLease && errors.Is(err, errNotKumiki)
		if err != nil && (why == nil || leases[i].Name == DefaultLease) {
			why = err
		}
	}
	if len(s.found) > 0 {
		return nil
	}
	if why == nil && err == nil {
		why = fmt.Errorf("no scheduler runs: there is no lease of a kumiki in namespace %s; start one with "+
			"`kumiki scheduler` or `kumiki up`, or name its lease with --scheduler-lease", s.w.Namespace)
	}
	why = cmp.Or(err, why)
	listed := s.electionOff(ctx, foreign)
	if len(s.found) > 0 {
		return nil
	}
	if apierrors.IsForbidden(listed) {
		return fmt.Errorf("%w; a scheduler with --leader-elect=false can be found by its pod alone, and you may not "+
			"list pods in namespace %s: bind the Role kumiki-viewer (deploy/viewer.yaml), or name the pod with "+
			"--scheduler-pod", why, s.w.Namespace)
	}
	return why
}

// leases gets the known leases. Others in the namespace do not count: many components may write leases of their own
// there, and one that carried the annotations would receive the credentials of users.
func (s *search) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	var found []coordinationv1.Lease
	var refused error
	for _, name := range knownLeases {
		lease, err := s.api.CoordinationV1().Leases(s.w.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			found = append(found, *lease)
		case apierrors.IsForbidden(err):
			refused = cmp.Or(refused, fmt.Errorf("you may not read the lease that names the scheduler: bind the Role "+
				"kumiki-viewer (deploy/viewer.yaml), or grant get on leases.coordination.k8s.io %q in namespace %q "+
				"(%w)", name, s.w.Namespace, err))
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading lease %s/%s: %w", s.w.Namespace, name, err)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, refused
}

// holder adds the kumiki that holds a lease.
func (s *search) holder(ctx context.Context, lease *coordinationv1.Lease) error {
	if err := usable(lease); err != nil {
		if s.w.Any && errors.Is(err, errNotKumiki) {
			s.found = append(s.found, &Instance{Holder: *lease.Spec.HolderIdentity, through: s.w.Endpoint, api: s.api,
				cfg: s.cfg, pods: podsOfHolder(lease, serve.DefaultPort)})
			return nil
		}
		return err
	}
	if late := overdue(lease, time.Now()); late > 0 && !s.renewed(ctx, lease) {
		return fmt.Errorf("no scheduler runs: %q holds lease %s/%s, but has not renewed it for %s",
			*lease.Spec.HolderIdentity, lease.Namespace, lease.Name, late.Round(time.Second))
	}
	endpoint, err := kube.EndpointOf(lease)
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(endpoint.Address); err != nil {
		return fmt.Errorf("address %q of the scheduler in the lease: %w", endpoint.Address, err)
	}
	i := &Instance{Holder: *lease.Spec.HolderIdentity, endpoint: endpoint, through: s.w.Endpoint,
		api: s.api, cfg: s.cfg}
	if names := lease.Annotations[kube.SchedulersAnnotation]; names != "" {
		i.Names = strings.Split(names, ",")
	}
	i.pods = podsOfHolder(lease, endpoint.Port())
	s.found = append(s.found, i)
	return nil
}

// podsOfHolder returns the pods that can be the holder of a lease: the one that it names; else one whose name is the
// host name, as without hostNetwork; else the static pod of kubeadm on the node of that name.
func podsOfHolder(lease *coordinationv1.Lease, port int) (pods []podPort) {
	if namespace, name, ok := strings.Cut(lease.Annotations[kube.PodAnnotation], "/"); ok {
		pods = append(pods, podPort{namespace, name, port})
	}
	host := *lease.Spec.HolderIdentity
	if end := strings.LastIndex(host, "_"); end > 0 {
		host = host[:end]
	}
	for _, name := range []string{host, "kube-scheduler-" + host} {
		if one := (podPort{lease.Namespace, name, port}); !slices.Contains(pods, one) {
			pods = append(pods, one)
		}
	}
	return pods
}

// errNotKumiki means that another scheduler holds the lease.
var errNotKumiki = errors.New("not kumiki")

// overdue returns for how long a lease was not renewed, by the clock of this machine, if that is several times its
// duration; else 0.
func overdue(lease *coordinationv1.Lease, now time.Time) time.Duration {
	s := lease.Spec
	if s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return 0
	}
	if late := now.Sub(s.RenewTime.Time); late > 4*time.Duration(*s.LeaseDurationSeconds)*time.Second {
		return late
	}
	return 0
}

// longestRenewal and renewalPoll bound how long, and how often, renewed reads a lease.
const longestRenewal, renewalPoll = 5 * time.Second, 500 * time.Millisecond

// renewed reports whether a lease that seems to be overdue is renewed all the same: the clock of this machine may be an
// hour ahead of the scheduler's. A holder renews its lease several times within its duration.
func (s *search) renewed(ctx context.Context, lease *coordinationv1.Lease) bool {
	watching := min(longestRenewal, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second/3)
	for began := time.Now(); time.Since(began) < watching; {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(renewalPoll):
		}
		now, err := s.api.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{})
		if err == nil && now.Spec.RenewTime != nil && !now.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
			return true
		}
	}
	return false
}

// usable returns an error unless a kumiki holds the lease.
func usable(lease *coordinationv1.Lease) error {
	name := lease.Namespace + "/" + lease.Name
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if holder == "" {
		return fmt.Errorf("no scheduler runs: no process holds lease %s", name)
	}
	if lease.Annotations[kube.EndpointAnnotation] == "" {
		return fmt.Errorf("the scheduler that holds lease %s is %q and %w, or serves no https: the lease has no "+
			"annotation %s; `kumiki why --offline` answers with any scheduler", name, holder, errNotKumiki,
			kube.EndpointAnnotation)
	}
	if wrote := lease.Annotations[kube.HolderAnnotation]; wrote != "" && wrote != holder {
		return fmt.Errorf("the scheduler that holds lease %s is %q and %w: the address in the lease was left there by "+
			"%q; `kumiki why --offline` answers with any scheduler", name, holder, errNotKumiki, wrote)
	}
	return nil
}

// electionOff adds the running pods of schedulers without leader election. Those of kubeadm are left out if the lease
// shows that they are another scheduler's.
func (s *search) electionOff(ctx context.Context, foreign bool) error {
	selectors := []string{ourPods, kubeadmPods}
	if foreign {
		selectors = selectors[:1]
	}
	for _, selector := range selectors {
		pods, err := s.api.CoreV1().Pods(s.w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Status.Phase == v1.PodRunning && p.DeletionTimestamp == nil {
				s.addPod(p.Namespace, p.Name, securePort(p))
			}
		}
		if len(s.found) > 0 {
			return nil
		}
	}
	return nil
}

// pod adds the pod that the user named. Its port is the default one if the user may not read the pod.
func (s *search) pod(ctx context.Context) error {
	namespace, name, ok := strings.Cut(s.w.Pod, "/")
	if !ok {
		namespace, name = s.w.Namespace, s.w.Pod
	}
	p, err := s.api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		s.addPod(namespace, name, serve.DefaultPort)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no pod %s/%s", namespace, name)
	case err != nil:
		return fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	default:
		s.addPod(namespace, name, securePort(p))
	}
	return nil
}

func (s *search) addPod(namespace, name string, port int) {
	s.found = append(s.found, &Instance{Holder: "pod " + namespace + "/" + name, through: s.w.Endpoint,
		pods: []podPort{{namespace, name, port}}, api: s.api, cfg: s.cfg})
}

// securePort returns the https port of a scheduler's pod: that of its flag, or the default one.
func securePort(p *v1.Pod) int {
	for _, c := range p.Spec.Containers {
		for _, word := range slices.Concat(c.Command, c.Args) {
			text, is := strings.CutPrefix(word, "--secure-port=")
			if port, err := strconv.Atoi(text); is && err == nil && port > 0 {
				return port
			}
		}
	}
	return serve.DefaultPort
}
