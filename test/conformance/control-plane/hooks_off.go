package main

import (
	"context"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// bootstrapHooks are the post-start hooks that do in the stock kube-apiserver what kube-bootstrap-controller does from
// outside.
var bootstrapHooks = []string{
	"bootstrap-controller",
	"start-system-namespaces-controller",
	"start-service-ip-repair-controllers",
	"start-kubernetes-service-cidr-controller",
}

// newHooksOffCommand is a kube-apiserver with the stock server's flags and none of its bootstrap hooks.
func newHooksOffCommand() *cobra.Command {
	serverOptions := options.NewServerRunOptions()
	command := &cobra.Command{
		Use:          "kube-apiserver-hooks-off",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := serverOptions.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			return runHooksOff(command.Context(), serverOptions)
		},
	}
	command.SetContext(genericapiserver.SetupSignalContext())
	flags := serverOptions.Flags()
	for _, flagSet := range flags.FlagSets {
		command.Flags().AddFlagSet(flagSet)
	}
	return command
}

func runHooksOff(ctx context.Context, serverOptions *options.ServerRunOptions) error {
	completedOptions, err := serverOptions.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completedOptions.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completedOptions)
	if err != nil {
		return err
	}
	config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(bootstrapHooks...)
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}
