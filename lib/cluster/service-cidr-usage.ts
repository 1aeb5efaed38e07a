import * as z from 'zod/mini';

const amount = z.int().check(z.gte(0));

/**
 * How much API servers have allocated from the cluster's ServiceCIDRs: what a pass over cluster IPs leaves in its run record,
 * where they are the record.
 */
const usageShape = z.object({
  /** Of each family, the default one's first: what all ServiceCIDRs that API servers allocate from have together. */
  sums: z.readonly(
    z.array(
      z.readonly(z.object({ family: z.enum(['IPv4', 'IPv6']), networks: amount, used: amount, capacity: amount })),
    ),
  ),
  /** Networks of ServiceCIDRs: the default one's, then the fullest. Capped. */
  networks: z.readonly(
    z.array(
      z.readonly(
        z.object({
          name: z.string(),
          cidr: z.string(),
          ready: z.boolean(),
          used: amount,
          /** A digit for each of {@link USAGE_CELLS} or fewer equal parts, in order: 0 for none in use, 4 for more than ¾. */
          cells: z.string(),
        }),
      ),
    ),
  ),
});
export type ServiceCidrUsage = Readonly<z.infer<typeof usageShape>>;

export const USAGE_CELLS = 256;

/** Returns the usage that a run record has as its state; `undefined` if it has none. */
export function serviceCidrUsageIn(state: unknown): ServiceCidrUsage | undefined {
  const parsed = usageShape.safeParse(state);
  return parsed.success ? parsed.data : undefined;
}
