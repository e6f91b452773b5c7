package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// removePods ends and removes every pod of a container runtime, as a machine does that is switched off: their
// containers are killed, their network addresses given back. It waits until the runtime answers, at most until ctx ends.
func removePods(ctx context.Context, socket string) error {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := cri.NewRuntimeServiceClient(connection)
	pods, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("listing the pods of %s: %w", socket, err)
	}
	var failures []error
	for _, pod := range pods.Items {
		_, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: pod.Id})
		if err == nil {
			_, err = client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: pod.Id})
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("pod %s/%s: %w", pod.Metadata.GetNamespace(), pod.Metadata.GetName(), err))
		}
	}
	log.Printf("removed %d of %d pods", len(pods.Items)-len(failures), len(pods.Items))
	return errors.Join(failures...)
}
