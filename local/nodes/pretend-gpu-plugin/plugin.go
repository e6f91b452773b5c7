package main

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// containerSysfs is where a container finds the pretended PCI tree; the real one is at /sys, which runc owns.
const containerSysfs = "/run/srvmod/p5"

// plugin answers the kubelet as the NVIDIA device plugin does, without any device behind it.
type plugin struct {
	dp.UnimplementedDevicePluginServer
	sysfs string        // host folder with the pretended PCI tree; empty: containers get none
	done  chan struct{} // closed when the server stops, so that ListAndWatch ends
}

func (p *plugin) GetDevicePluginOptions(context.Context, *dp.Empty) (*dp.DevicePluginOptions, error) {
	return &dp.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *dp.Empty, stream grpc.ServerStreamingServer[dp.ListAndWatchResponse]) error {
	if err := stream.Send(&dp.ListAndWatchResponse{Devices: devices()}); err != nil {
		return err
	}
	select { // pretended GPUs never change their health
	case <-p.done:
	case <-stream.Context().Done():
	}
	return nil
}

func (p *plugin) GetPreferredAllocation(
	_ context.Context, request *dp.PreferredAllocationRequest,
) (*dp.PreferredAllocationResponse, error) {
	response := &dp.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		ids := preferred(container.AvailableDeviceIDs, container.MustIncludeDeviceIDs, int(container.AllocationSize))
		response.ContainerResponses = append(
			response.ContainerResponses, &dp.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return response, nil
}

// Allocate names the GPUs in NVIDIA_VISIBLE_DEVICES, sorted, and mounts the pretended machine (PCI tree, nvidia-smi)
// in which the engine's island check looks them up; SRVMOD_PRETEND_ROOT tells that it is one.
func (p *plugin) Allocate(_ context.Context, request *dp.AllocateRequest) (*dp.AllocateResponse, error) {
	response := &dp.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := slices.Clone(container.DevicesIds)
		for _, id := range ids {
			if deviceIndex(id) < 0 {
				return nil, status.Errorf(codes.InvalidArgument, "device %q: allowed are GPU-0 to GPU-%d", id, gpuCount-1)
			}
		}
		slices.Sort(ids)
		answer := &dp.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")},
		}
		if p.sysfs != "" {
			answer.Envs["SRVMOD_PRETEND_ROOT"] = containerSysfs
			answer.Mounts = []*dp.Mount{{HostPath: p.sysfs, ContainerPath: containerSysfs, ReadOnly: true}}
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}
