// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/question"
)

// subject is the subject of a question.
type subject struct {
	kind string // pod, node, gang
	name string
}

// parseSubject reads pod/x, pod x, node/n, node n, gang/g, gang g, or x, which is a pod.
func parseSubject(a []string) (subject, error) {
	kind, name := "pod", ""
	switch {
	case len(a) == 2:
		kind, name = a[0], a[1]
	case strings.Contains(a[0], "/"):
		kind, name, _ = strings.Cut(a[0], "/")
	default:
		name = a[0]
	}
	if name == "" || strings.Contains(name, "/") {
		return subject{}, usageError{fmt.Errorf("want one name, as in pod/NAME, node/NAME or gang/NAME, got %q",
			strings.Join(a, " "))}
	}
	switch strings.ToLower(kind) {
	case "pod", "pods", "po":
		return subject{"pod", name}, nil
	case "node", "nodes", "no":
		return subject{"node", name}, nil
	case "gang", "gangs", "podgroup", "podgroups", "pg":
		return subject{"gang", name}, nil
	}
	return subject{}, usageError{fmt.Errorf("can explain pods, nodes and gangs, not %q", kind)}
}

func newWhyCommand(io streams, plugins app.Plugins) *cobra.Command {
	var find finder
	off := offline{plugins: plugins}
	var out output
	var conditions []string
	c := &cobra.Command{
		Use:     "why (pod/NAME | node/NAME | gang/NAME)",
		Aliases: []string{"explain"},
		Short:   "Explain why a pod or a gang is pending, why a pod is on its node, or what is on a node",
		Long: `Explain why a pod or a gang is pending and what would help, why a pod is on its node, or what is on a
node.

With --if, show what would happen to a pod or a gang under conditions. Nothing is changed: the scheduler applies the
conditions in the order given, evaluates the pod or gang, and undoes them. The conditions are

  delete pod/NAME               its controller, if it has one, creates it again, and it is scheduled too
  delete gang/NAME              the same for all pods of a gang
  drain node/NAME               its pods leave, except those that belong to it (DaemonSet, static); it is cordoned
  cordon node/NAME              no further pods are placed on it
  uncordon node/NAME            pods may be placed on it again
  delete node/NAME              the node is removed, with all its pods
  add-nodes N like node/NAME    new nodes with its labels, taints, allocatable and DaemonSet pods

Pods and gangs are in the namespace of -n; pod/NAMESPACE/NAME is in another one.`,
		Example: `  kumiki why pod/web-1 -n shop
  kumiki why pod web-1 -n shop -o wide
  kumiki why node/node-0001
  kumiki why gang/train -n ml                # a pod group, or the name in an annotation
  kumiki why pod/web-1 -o json
  kumiki why pod/web-1 --if 'drain node/n1' --if 'add-nodes 3 like node/n2'
  kumiki why pod/web-1 --offline             # evaluated here, with any scheduler in the cluster
  kumiki why pod/web-1 --from monday.tape    # from a snapshot of kumiki capture`,
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, a []string) error {
			what, err := parseSubject(a)
			if err != nil {
				return err
			}
			if err := checkConditions(what, conditions); err != nil {
				return err
			}
			if off.on || off.from != "" {
				return off.why(c.Context(), io, &find, out, what, conditions)
			}
			return whyRunning(c.Context(), io, &find, out, what, conditions)
		},
		ValidArgsFunction: func(c *cobra.Command, a []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeWhy(c.Context(), &find, a, toComplete), cobra.ShellCompDirectiveNoFileComp
		},
	}
	find.addFlags(c)
	off.addFlags(c)
	out.addFlag(c)
	c.Flags().StringArrayVar(&conditions, "if", nil,
		"apply a condition, such as 'delete pod/NAME' or 'drain node/NAME'; may be repeated, and is applied in "+
			"the order given")
	c.RegisterFlagCompletionFunc("if", cobra.FixedCompletions(question.ConditionForms,
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

// checkConditions checks the syntax of conditions before a request is sent.
func checkConditions(what subject, conditions []string) error {
	switch err := question.CheckConditions(conditions); {
	case err != nil:
		return usageError{fmt.Errorf("--if: %w", err)}
	case len(conditions) > 0 && what.kind == "node":
		return usageError{fmt.Errorf("--if is about a pod or a gang that is to get a place, not about a node")}
	}
	return nil
}

// whyRunning asks the running scheduler, the one of the pod's scheduler name first.
func whyRunning(ctx context.Context, io streams, find *finder, out output, what subject, conditions []string) error {
	namespace, err := find.namespace()
	if err != nil {
		return err
	}
	schedulerName := ""
	if what.kind == "pod" {
		schedulerName = find.schedulerNameOf(ctx, namespace, what.name)
	}
	running, err := find.schedulers(ctx, schedulerName)
	if err != nil {
		return err
	}
	var show func() error
	err = running.ask(ctx, func(client *ask.Client) (err error) {
		show, err = askOne(ctx, io, client, out, namespace, what, conditions)
		return err
	})
	switch {
	case unknown(err) && what.kind == "gang":
		return noGang(namespace, what.name)
	case unknown(err) && what.kind == "pod":
		return explainUnknown(ctx, find, running, namespace, what.name, err)
	case err != nil:
		return err
	}
	return show()
}

// askOne asks one scheduler and returns how to print the answer.
func askOne(ctx context.Context, io streams, client *ask.Client, out output, namespace string, what subject,
	conditions []string) (show func() error, err error) {
	switch {
	case len(conditions) > 0:
		report, err := client.WhatIf(ctx, what.kind == "gang", namespace, what.name, conditions)
		return func() error {
			return out.print(io.Out, report, func(wide bool) error { return text.WhatIf(io.Out, report, wide) })
		}, err
	case what.kind == "node":
		report, err := client.Node(ctx, what.name)
		return func() error {
			return out.print(io.Out, report, func(wide bool) error { return text.Node(io.Out, report, wide) })
		}, err
	case what.kind == "gang":
		report, err := client.Gang(ctx, namespace, what.name)
		return func() error {
			return out.print(io.Out, report, func(wide bool) error { return text.Gang(io.Out, report, wide) })
		}, err
	}
	report, err := client.Pod(ctx, namespace, what.name)
	return func() error {
		return out.print(io.Out, report, func(wide bool) error { return text.Pod(io.Out, report, wide) })
	}, err
}

func noGang(namespace, name string) error {
	return fmt.Errorf("there is no gang %s/%s: no pod of this scheduler's, and no pod group, names it", namespace, name)
}

// explainUnknown finds out why no scheduler knows a pod.
func explainUnknown(ctx context.Context, find *finder, running schedulers, namespace, name string,
	otherwise error) error {
	cfg, err := find.rest()
	if err != nil {
		return otherwise
	}
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return otherwise
	}
	pod, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no pod %s/%s", namespace, name)
	case err != nil:
		return otherwise
	case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		return fmt.Errorf("pod %s/%s has ended (%s) and holds no capacity any more; it was on %q", namespace, name,
			pod.Status.Phase, pod.Spec.NodeName)
	case pod.Spec.NodeName == "":
		var names []string
		for _, instance := range running {
			names = append(names, instance.String())
		}
		return fmt.Errorf("pod %s/%s asks for scheduler %q, which is none of those that were asked: %s; a kumiki with "+
			"that profile schedules nothing while another deployment holds its lease; `kumiki why --offline` answers "+
			"with any scheduler", namespace, name, pod.Spec.SchedulerName,
			strings.Join(names, "; "))
	}
	return otherwise
}

// completeWhy completes pods or gangs of the namespace, or nodes.
func completeWhy(ctx context.Context, find *finder, a []string, toComplete string) []string {
	cfg, err := find.rest()
	if err != nil || len(a) > 1 {
		return nil
	}
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil
	}
	prefix, kind := "", "pod"
	switch {
	case len(a) == 1 && (strings.HasPrefix(a[0], "gang") || strings.HasPrefix(a[0], "podgroup") || a[0] == "pg"):
		kind = "gang"
	case len(a) == 1:
		kind = a[0]
	case strings.HasPrefix(toComplete, "node/"):
		prefix, kind = "node/", "node"
	case strings.HasPrefix(toComplete, "gang/"):
		prefix, kind = "gang/", "gang"
	case strings.HasPrefix(toComplete, "pod/"):
		prefix = "pod/"
	}
	var names []string
	if strings.HasPrefix(kind, "no") {
		nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 500, ResourceVersion: "0"})
		if err != nil {
			return nil
		}
		for _, n := range nodes.Items {
			names = append(names, prefix+n.Name)
		}
		return names
	}
	namespace, err := find.namespace()
	if err != nil {
		return nil
	}
	pods, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil
	}
	for _, p := range pods.Items {
		if kind != "gang" {
			names = append(names, prefix+p.Name)
			continue
		}
		for _, gang := range convert.DeclaredGangs(&p, everyDeclaration) {
			if !slices.Contains(names, prefix+gang) {
				names = append(names, prefix+gang)
			}
		}
	}
	return names
}

// everyDeclaration counts the gangs that a scheduler may read. Which ones it does read is not known here.
var everyDeclaration = convert.GangRules{
	Group: true, Annotation: true, Sigs: true, Volcano: true, Pfnet: config.DefaultPfnetPrefix,
}
