import * as z from 'zod/mini';

const amount = z.int().check(z.gte(0));
const listOf = <Shape extends z.core.$ZodShape>(shape: Shape) => z.readonly(z.array(z.readonly(z.object(shape))));

/** The usage of the cluster's ServiceCIDRs. If API servers allocate, `cluster-ip-repair` saves it in its run record. */
const usageShape = z.object({
  /** For each family, the total usage of its ready ServiceCIDRs. The default family comes first. */
  sums: listOf({ family: z.enum(['IPv4', 'IPv6']), networks: amount, used: amount, capacity: amount }),
  /** The networks of the default ServiceCIDR first, and then the fullest of the other networks, up to a limit. */
  networks: listOf({
    name: z.string(),
    cidr: z.string(),
    ready: z.boolean(),
    used: amount,
    /** A digit for each of up to {@link USAGE_CELLS} equal parts of the network: 0 for unused, 4 for more than ¾ used. */
    cells: z.string(),
  }),
});
export type ServiceCidrUsage = Readonly<z.infer<typeof usageShape>>;

export const USAGE_CELLS = 256;

export function serviceCidrUsageIn(state: unknown): ServiceCidrUsage | undefined {
  return usageShape.safeParse(state).data;
}
