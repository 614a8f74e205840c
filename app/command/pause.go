// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/kube"
)

const (
	// maxReason bounds the text of a pause: it is on the lease, which is written every other second.
	maxReason = 1000
	// pauseTimeout is longer than a takeover with the default lease.
	pauseTimeout = 30 * time.Second
	// pausePoll is the period of reading the lease for the confirmation.
	pausePoll = 200 * time.Millisecond
)

// pauser executes pause and resume: it writes the request on the lease, and waits until the leader has acted on it.
type pauser struct {
	find    finder
	out     output
	reason  string
	timeout time.Duration

	api   kubernetes.Interface
	where ask.Where
}

func newPauseCommand(io streams) *cobra.Command {
	p := &pauser{}
	c := &cobra.Command{
		Use:   "pause [--reason TEXT]",
		Short: "Pause scheduling until kumiki resume",
		Long: `Make the leader bind and evict no pods, and wait until it confirms: all requests that it sent before
have responses then. The scheduler stays ready and follows the cluster, so that it continues at once after kumiki
resume.

The pause is kept on the scheduler's lease (annotation ` + kube.PausedAnnotation + `), so it survives restarts and
applies to the next leader. It needs rights to get and patch that lease.`,
		Example: `  kumiki pause --reason "storage upgrade"
  kumiki resume`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return p.run(c.Context(), io, true) },
	}
	p.addFlags(c)
	c.Flags().StringVar(&p.reason, "reason", "", "reason that kumiki why and kumiki queue show")
	return c
}

func newResumeCommand(io streams) *cobra.Command {
	p := &pauser{}
	c := &cobra.Command{
		Use:   "resume",
		Short: "End a pause",
		Long: `Remove the pause from the scheduler's lease, and wait until the leader has observed that. It needs
rights to get and patch the lease.`,
		Example: `  kumiki resume`,
		Args:    args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return p.run(c.Context(), io, false) },
	}
	p.addFlags(c)
	return c
}

func (p *pauser) addFlags(c *cobra.Command) {
	p.find.addLeaseFlags(c, ask.Default().Namespace+"/"+ask.DefaultLease)
	p.out.addFlag(c)
	c.Flags().DurationVar(&p.timeout, "timeout", pauseTimeout,
		"how long to wait for the scheduler's confirmation; 0 does not wait")
}

// run writes the request, waits, and prints the state.
func (p *pauser) run(ctx context.Context, io streams, pause bool) error {
	if len(p.reason) > maxReason {
		return usageError{fmt.Errorf("--reason is %d bytes long, at most %d are kept", len(p.reason), maxReason)}
	}
	var err error
	if p.where, err = p.find.where(); err != nil {
		return err
	}
	p.where.Lease = cmp.Or(p.where.Lease, ask.DefaultLease)
	cfg, err := p.find.rest()
	if err != nil {
		return err
	}
	if p.api, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	written, err := p.write(ctx, pause)
	if err != nil {
		return err
	}
	now, answer := written, error(nil)
	if p.timeout > 0 {
		now, answer = p.await(ctx, written, pause)
	}
	state := standing(now)
	if err := p.out.print(io.Out, state, func(bool) error {
		return text.Pausing(io.Out, state,
			time.Now())
	}); err != nil {
		return err
	}
	return answer
}

func (p *pauser) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := p.api.CoordinationV1().Leases(p.where.Namespace).Get(ctx, p.where.Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("no scheduler runs: there is no lease %s/%s; a pause is kept there", p.where.Namespace,
			p.where.Lease)
	case err != nil:
		return nil, fmt.Errorf("reading lease %s/%s: %w", p.where.Namespace, p.where.Lease, err)
	}
	return lease, nil
}

// write adds the request to the lease, or removes it, based on the version that it has read.
func (p *pauser) write(ctx context.Context, pause bool) (*coordinationv1.Lease, error) {
	by := p.self(ctx)
	for {
		lease, err := p.lease(ctx)
		if err != nil {
			return nil, err
		}
		notes := map[string]any{kube.PausedAnnotation: nil, kube.PauseStateAnnotation: nil}
		if pause {
			wish := kube.Pause{Since: time.Now().UTC().Truncate(time.Second), Reason: p.reason, By: by}
			if was := kube.PauseOf(lease); was != nil && !was.Since.IsZero() {
				wish.Since = was.Since // it is one pause, even if another user adds a reason
				if p.reason == "" {
					wish.Reason, wish.By = was.Reason, was.By
				}
			}
			notes = map[string]any{kube.PausedAnnotation: wish.Text()}
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": lease.ResourceVersion,
			"annotations": notes}})
		if err != nil {
			return nil, fmt.Errorf("writing the pause: %w", err)
		}
		written, err := p.api.CoordinationV1().Leases(p.where.Namespace).Patch(ctx, p.where.Lease,
			types.MergePatchType, body,
			metav1.PatchOptions{FieldManager: "kumiki-pause"})
		switch {
		case apierrors.IsConflict(err) && ctx.Err() == nil:
			continue // the leader has renewed it meanwhile
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("you may not write the lease that carries the pause: grant patch on "+
				"leases.coordination.k8s.io %q in namespace %q (%w)",
				p.where.Lease, p.where.Namespace, err)
		case err != nil:
			return nil, fmt.Errorf("writing lease %s/%s: %w", p.where.Namespace, p.where.Lease, err)
		}
		return written, nil
	}
}

// self returns the user who requests it, empty if the API server does not report that.
func (p *pauser) self(ctx context.Context) string {
	review, err := p.api.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// await waits until a leader has written the lease after our version: it has read the request then, and its
// confirmation is current.
func (p *pauser) await(ctx context.Context, written *coordinationv1.Lease,
	pause bool) (now *coordinationv1.Lease, err error) {
	now = written
	for limit := time.Now().Add(p.timeout); ; {
		lease, err := p.lease(ctx)
		switch {
		case err == nil:
			now = lease
		case ctx.Err() != nil:
			return now, ctx.Err()
		}
		wish, left := kube.PauseOf(now), holderOf(now) == ""
		switch {
		case !pause && wish != nil:
			return now, errors.New("scheduling was paused again meanwhile: " + wish.Text())
		case pause && wish == nil:
			return now, errors.New("the pause was taken off the lease meanwhile")
		case !pause && (left || renewed(written, now)), pause && renewed(written, now) && kube.PauseStateOf(now).Paused:
			return now, nil
		case time.Now().After(limit):
			if err != nil {
				return now, err
			}
			return now, unanswered(written, now, pause, p.timeout)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pausePoll):
		}
	}
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// renewed reports whether a leader has written the lease after our write.
func renewed(written, now *coordinationv1.Lease) bool {
	return now.ResourceVersion != written.ResourceVersion && holderOf(now) != "" && now.Spec.RenewTime != nil &&
		(written.Spec.RenewTime == nil || !now.Spec.RenewTime.Equal(written.Spec.RenewTime))
}

// unanswered returns why there is no confirmation, and what to check.
func unanswered(written, now *coordinationv1.Lease, pause bool, after time.Duration) error {
	name, holder, state := now.Namespace+"/"+now.Name, holderOf(now), kube.PauseStateOf(now)
	why := ""
	switch {
	case holder == "":
		why = fmt.Sprintf("no process holds lease %s. The pause is kept there, and the next kumiki that leads starts "+
			"paused", name)
	case !renewed(written, now):
		why = fmt.Sprintf("%s holds lease %s and has not renewed it since: check whether it runs and reaches "+
			"the API server", holder, name)
	case !pause:
		why = fmt.Sprintf("%s holds lease %s and has not continued: check its log", holder, name)
	case state.InFlight > 0:
		why = fmt.Sprintf("%s sends no new requests, but %d earlier ones have no outcome: check whether the API "+
			"server answers it, and its metric kumiki_bind_unknown_outcomes_total",
			holder, state.InFlight)
	default:
		why = fmt.Sprintf("%s leads and does not answer a pause: it is kube-scheduler, or a kumiki too old for "+
			"it, and it continues to bind pods. The pause stays on lease %s until kumiki resume",
			holder, name)
	}
	return fmt.Errorf("no answer after %s: %s", after, strings.TrimSpace(why))
}

// standing returns the state of a pause on a lease.
func standing(lease *coordinationv1.Lease) text.Pause {
	out := text.Pause{Lease: lease.Namespace + "/" + lease.Name, State: "scheduling", Holder: holderOf(lease)}
	wish := kube.PauseOf(lease)
	if wish == nil {
		return out
	}
	answer := kube.PauseStateOf(lease)
	out.State, out.InFlight = "asked", answer.InFlight
	switch {
	case answer.Paused:
		out.State = "paused"
	case answer.Holder != "":
		out.State = "pausing"
	}
	out.Reason, out.By = wish.Reason, wish.By
	if !wish.Since.IsZero() {
		out.Since = &wish.Since
	}
	return out
}
