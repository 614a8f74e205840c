// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// churner makes and removes the objects of one template of a churn.
type churner struct {
	make  maker[*unstructured.Unstructured]
	where dynamic.ResourceInterface
	// namespace of the objects; empty for objects of the cluster.
	namespace string
	// living has the names of the existing objects by slot of a Recreate; empty for none.
	living []string
}

// churn starts a churn in the background.
func (r *run) churn(ctx context.Context, op *workload.Churn) error {
	namespace := r.ownNamespace(op.Namespace)
	if err := r.ensureNamespace(ctx, namespace); err != nil {
		return err
	}
	var churners []*churner
	for i := range op.Templates {
		make, err := ofTemplate(&op.Templates[i])
		if err != nil {
			return err
		}
		first, err := make(0, op.Number)
		if err != nil {
			return err
		}
		where, err := r.anywhere(first, namespace)
		if err != nil {
			return err
		}
		c := &churner{make: make, where: where, namespace: first.GetNamespace()}
		if op.Recreate {
			c.living = slices.Repeat([]string{""}, op.Number)
		}
		churners = append(churners, c)
	}
	began, index := r.Clock.Now(), r.index
	r.inBackground(ctx, func(ctx context.Context) error {
		for round := 0; op.Recreate || op.Number == 0 || round < op.Number; round++ {
			if err := r.until(ctx, began.Add(time.Duration(round+1)*op.Interval)); err != nil {
				return err
			}
			for _, c := range churners {
				if err := r.turn(ctx, c, op, index, round); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return nil
}

// turn creates an object, or deletes the one that a Recreate made in the same slot. An object that another client has
// deleted, such as a preempted pod, counts as deleted.
func (r *run) turn(ctx context.Context, c *churner, op *workload.Churn, index, round int) error {
	slot := 0
	if op.Recreate {
		slot = round % op.Number
		if name := c.living[slot]; name != "" {
			c.living[slot] = ""
			if err := c.where.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s: %w", name, err)
			}
			return nil
		}
	}
	o, err := c.make(round, op.Number)
	if err != nil {
		return err
	}
	name(o, index, round)
	o.SetNamespace(c.namespace)
	r.noteIfPod(o, c.namespace, index)
	if _, err := c.where.Create(ctx, o, metav1.CreateOptions{FieldValidation: strict}); err != nil {
		return fmt.Errorf("create %s: %w", objectName(o), err)
	}
	if op.Recreate {
		c.living[slot] = o.GetName()
	}
	return nil
}
